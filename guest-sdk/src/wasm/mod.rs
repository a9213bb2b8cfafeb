//! Where the host is real: the imports, the export, the logger and the last words.

mod http;

use std::hint::black_box;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::follow_up::{EnqueueError, FollowUp};
use crate::handler::attempt;
use crate::host;
use crate::http::{ErrorKind, Outgoing, Response};
use crate::json::{FromJson, ToJson};

pub use bindings::export_handler;
pub use bindings::exports::jobq::handler::handler::{Guest, Job};
pub use bindings::jobq::handler::types::JobError;

use bindings::jobq::handler::types::DelayedRetry;
use bindings::jobq::handler::{context, log as host_log, queue};

/// What wit-bindgen makes of `wit/`.
#[expect(missing_docs, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "job-handler",
        pub_export_macro: true,
        export_macro_name: "export_handler",
        default_bindings_module: "jobq_guest::__private::bindings",
    });
}

/// Runs one attempt; `module` is where the handler stands.
pub fn handle<P: FromJson, A: ToJson>(
    function: fn(P, &Context) -> Result<A>,
    job: Job,
    module: &'static str,
) -> std::result::Result<String, JobError> {
    std::panic::set_hook(Box::new(last_words));
    let crate_name = module.split("::").next().unwrap_or(module);
    // An instance runs one attempt, so the logger is always the first.
    if log::set_logger(LOGGER.get_or_init(|| Logger { crate_name })).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
    let Job { id, job_type, payload, attempt: number, max_attempts } = job;
    let ctx = Context::new(host::Job { id, job_type, payload, attempt: number, max_attempts }, Imports);
    // Not inlined, so that the frames of a trap name it.
    attempt(black_box(function), &ctx).map_err(JobError::from)
}

impl From<Error> for JobError {
    fn from(error: Error) -> JobError {
        match error {
            Error::Retry(message) => JobError::Retry(message),
            Error::RetryAfter(message, delay) => {
                JobError::RetryAfter(DelayedRetry { message, after_ms: milliseconds(delay) })
            }
            Error::Fatal(message) => JobError::Fatal(message),
            Error::Snooze(delay) => JobError::Snooze(milliseconds(delay)),
        }
    }
}

/// Never shorter than asked for.
fn milliseconds(delay: Duration) -> u64 {
    let rest = u64::from(delay.subsec_nanos()).div_ceil(1_000_000);
    delay.as_secs().saturating_mul(1_000).saturating_add(rest)
}

/// The host that runs this component.
pub(crate) struct Imports;

impl Imports {
    pub(crate) fn remaining(&self) -> Duration {
        Duration::from_millis(context::remaining_ms())
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        context::is_cancelled()
    }

    pub(crate) fn progress(&self, percent: u8, message: &str) {
        context::progress(percent, message);
    }

    /// Where a granted directory is: the host shows it under the name that it has for the handler.
    pub(crate) fn place(&self, guest: &str) -> PathBuf {
        guest.into()
    }

    pub(crate) fn http(&self, request: Outgoing, job_type: &str) -> std::result::Result<Response, ErrorKind> {
        http::send(request, job_type)
    }

    pub(crate) fn enqueue(&self, job: FollowUp) -> std::result::Result<String, EnqueueError> {
        let FollowUp { job_type, payload, priority, delay, max_attempts, key } = job;
        let delay_ms = delay.map(milliseconds);
        let job = queue::NewJob { job_type, payload, priority, delay_ms, max_attempts, unique_key: key };
        queue::enqueue(&job).map_err(|error| match error {
            queue::EnqueueError::Invalid(why) => EnqueueError::Invalid(why),
            queue::EnqueueError::Denied(why) => EnqueueError::Denied(why),
        })
    }
}

static LOGGER: OnceLock<Logger> = OnceLock::new();

/// Sends the lines of the `log` crate to the host, which knows no level below debug.
struct Logger {
    crate_name: &'static str,
}

impl Logger {
    /// The target of a line, unless it is only the handler's own module.
    fn foreign<'a>(&self, target: &'a str) -> Option<&'a str> {
        let own = target.strip_prefix(self.crate_name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        (!own).then_some(target)
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Debug
    }

    fn log(&self, record: &Record<'_>) {
        let level = match record.level() {
            Level::Error => host_log::Level::Error,
            Level::Warn => host_log::Level::Warn,
            Level::Info => host_log::Level::Info,
            Level::Debug => host_log::Level::Debug,
            Level::Trace => return,
        };
        match self.foreign(record.target()) {
            Some(target) => host_log::write(level, &format!("{target}: {}", record.args())),
            None => host_log::write(level, &record.args().to_string()),
        }
    }

    fn flush(&self) {}
}

/// The message of a panic, for the host to find on stderr; it adds the frames, which std would offer to print here.
fn last_words(panic: &PanicHookInfo<'_>) {
    eprintln!("{panic}");
}
