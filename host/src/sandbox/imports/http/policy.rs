//! What the requests of one attempt are held to, and what its log is told of those that are refused.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::sandbox::denials::table_of;
use crate::sandbox::origin::{HttpGrant, Origin};
use crate::sandbox::output::Output;

/// Lines about refused requests in the log of one attempt: a guest that asks in a loop says nothing new.
const MAX_LINES: usize = 20;

/// Shared by the requests of one attempt.
pub(super) struct HttpPolicy {
    pub(super) granted: Vec<HttpGrant>,
    /// Bytes of the body of one response.
    pub(super) max_response: usize,
    /// When the attempt is over, and every request with it.
    pub(super) deadline: Instant,
    job_type: String,
    output: Arc<Output>,
    said: Mutex<Vec<String>>,
    /// Where the connections that stand go.
    open: Mutex<Vec<Origin>>,
}

/// One of the connections that an attempt may have; free again when it is dropped.
pub(super) struct Slot {
    policy: Arc<HttpPolicy>,
    origin: Origin,
}

impl Slot {
    /// Takes one, if fewer than `most` are taken.
    pub(super) fn take(policy: &Arc<HttpPolicy>, origin: &Origin, most: usize) -> Option<Self> {
        let mut open = policy.open();
        (open.len() < most).then(|| {
            open.push(origin.clone());
            Self { policy: Arc::clone(policy), origin: origin.clone() }
        })
    }
}

impl Drop for Slot {
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
        Self { granted, max_response, deadline, job_type, output, said: Mutex::default(), open: Mutex::default() }
    }

    pub(super) fn allows(&self, origin: &Origin) -> bool {
        self.granted.iter().any(|grant| grant.allows(origin))
    }

    /// Names the line of the settings that would allow `origin`.
    pub(super) fn say_denied(&self, origin: &Origin) {
        let line = self.line_with(origin);
        self.say(format!("denied a request to {origin}: it needs {line}"));
    }

    /// The same for an address that a granted name stands for.
    pub(super) fn say_reserved(&self, origin: &Origin, address: &Origin, what: &str) {
        let (host, line) = (&address.host, self.line_with(address));
        self.say(format!(
            "denied a request to {origin}: its name stands for {host}, {what}, which must be granted itself: it needs {line}"
        ));
    }

    fn line_with(&self, origin: &Origin) -> String {
        let mut list: Vec<_> = self.granted.iter().map(|grant| format!("\"{grant}\"")).collect();
        list.push(format!("\"{origin}\""));
        format!("`http = [{}]` under `{}` in jobq.toml", list.join(", "), table_of(&self.job_type))
    }

    /// Names the requests that are not over; their attempt has run out of time.
    pub(super) fn say_open(&self) {
        let mut waiting: Vec<String> = self.open().iter().map(ToString::to_string).collect();
        waiting.sort();
        waiting.dedup();
        if !waiting.is_empty() {
            self.say(format!("when its time was up, requests were not over: {}", waiting.join(", ")));
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Origin>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a line into the log of the attempt, unless it stands there.
    pub(super) fn say(&self, message: impl Display) {
        let message = message.to_string();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MAX_LINES && !said.contains(&message) {
            self.output.say(message.clone());
            said.push(message);
        }
    }
}
