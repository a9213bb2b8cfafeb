//! The rules for the requests of one attempt, and the log lines about those that are denied.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use crate::sandbox::denials::table_of;
use crate::sandbox::origin::{HttpGrant, Origin};
use crate::sandbox::output::Output;
use parking_lot::{Mutex, MutexGuard};

/// Lines about denied requests in the log of one attempt; a guest may try in a loop.
const MAX_LINES: usize = 20;

/// Shared by the requests of one attempt.
pub(super) struct HttpPolicy {
    pub(super) granted: Vec<HttpGrant>,
    /// Bytes of the body of one response.
    pub(super) max_response: usize,
    /// When the attempt, and every request with it, ends.
    pub(super) deadline: Instant,
    job_type: String,
    output: Arc<Output>,
    logged: Mutex<Vec<String>>,
    /// The origins of the open connections.
    open: Mutex<Vec<Origin>>,
}

/// One of the connections that an attempt may have open; released when it is dropped.
pub(super) struct ConnectionSlot {
    policy: Arc<HttpPolicy>,
    origin: Origin,
}

impl ConnectionSlot {
    /// Takes a slot, if fewer than `max` are taken.
    pub(super) fn take(policy: &Arc<HttpPolicy>, origin: &Origin, max: usize) -> Option<Self> {
        let mut open = policy.open();
        (open.len() < max).then(|| {
            open.push(origin.clone());
            Self { policy: Arc::clone(policy), origin: origin.clone() }
        })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.policy.open();
        if let Some(at) = open.iter().position(|origin| *origin == self.origin) {
            open.swap_remove(at);
        }
    }
}

impl HttpPolicy {
    pub(super) fn new(
        granted: Vec<HttpGrant>,
        max_response: usize,
        deadline: Instant,
        job_type: &str,
        output: Arc<Output>,
    ) -> Self {
        let job_type = job_type.to_owned();
        Self { granted, max_response, deadline, job_type, output, logged: Mutex::default(), open: Mutex::default() }
    }

    pub(super) fn allows(&self, origin: &Origin) -> bool {
        self.granted.iter().any(|grant| grant.allows(origin))
    }

    /// Logs the line of the settings that would allow `origin`.
    pub(super) fn log_denied(&self, origin: &Origin) {
        let line = self.setting_with(origin);
        self.log(format!("denied a request to {origin}: it needs {line}"));
    }

    /// The same for an address that a granted name resolves to.
    pub(super) fn log_reserved(&self, origin: &Origin, address: &Origin, what: &str) {
        let (host, line) = (&address.host, self.setting_with(address));
        self.log(format!(
            "denied a request to {origin}: its name resolves to {host}, {what}, which needs a grant of its own: it needs {line}"
        ));
    }

    fn setting_with(&self, origin: &Origin) -> String {
        let mut list: Vec<_> = self.granted.iter().map(|grant| format!("\"{grant}\"")).collect();
        list.push(format!("\"{origin}\""));
        format!("`http = [{}]` under `{}` in jobq.toml", list.join(", "), table_of(&self.job_type))
    }

    /// Logs the requests that were still open when the attempt timed out.
    pub(super) fn log_open(&self) {
        let mut open: Vec<String> = self.open().iter().map(ToString::to_string).collect();
        open.sort();
        open.dedup();
        if !open.is_empty() {
            self.log(format!("requests still open at the time limit: {}", open.join(", ")));
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Origin>> {
        self.open.lock()
    }

    /// Adds a warning to the log of the attempt, each only once.
    pub(super) fn log(&self, message: impl Display) {
        let message = message.to_string();
        let mut logged = self.logged.lock();
        if logged.len() < MAX_LINES && !logged.contains(&message) {
            self.output.warn(message.clone());
            logged.push(message);
        }
    }
}
