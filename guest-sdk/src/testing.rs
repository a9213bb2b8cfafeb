//! A fake attempt for native tests of handlers.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Once;
use std::time::Duration;

use log::{LevelFilter, Log, Metadata, Record};

use crate::context::Context;
use crate::error::Result;
use crate::follow_up::{EnqueueError, FollowUp};
use crate::handler::attempt;
use crate::host::Job;
use crate::http::{ErrorKind, Outgoing, Response};
use crate::json::{FromJson, ToJson};

/// A fake attempt. It returns configured values and records the calls of the handler.
///
/// By default, it is the first of three attempts with 30 seconds left. The job isn't cancelled, and every follow-up job is
/// accepted.
///
/// ```
/// use jobq_guest::testing::Fake;
/// use jobq_guest::{Context, Error, Result, log};
///
/// fn stubborn(steps: u32, ctx: &Context) -> Result<u32> {
///     for step in 1..=steps {
///         ctx.check_cancelled()?;
///         ctx.progress((step * 100 / steps) as u8, format!("step {step}"));
///     }
///     if ctx.is_last_attempt() {
///         log::warn!("this was the last attempt");
///     }
///     Ok(steps)
/// }
///
/// let fake = Fake::new().attempt(3);
/// assert_eq!(fake.run(stubborn, "2"), Ok("2".into()));
/// assert_eq!(fake.progress(), [(50, "step 1".into()), (100, "step 2".into())]);
/// assert_eq!(fake.logs(), ["warn: this was the last attempt"]);
///
/// let fake = Fake::new().cancelled_after(1);
/// assert_eq!(fake.run(stubborn, "2"), Err(Error::Fatal("cancelled".into())));
/// ```
///
/// If the handler panics, the test panics.
#[derive(Debug)]
pub struct Fake {
    job: Job,
    state: Rc<RefCell<State>>,
}

/// The fake host behind the contexts of a [`Fake`].
pub(crate) struct Recorder(Rc<RefCell<State>>);

/// The configured values and the recorded calls.
#[derive(Debug)]
struct State {
    remaining: Duration,
    /// How many more calls of `is_cancelled` return `false`; `None` means all.
    checks_left: Option<u32>,
    refusal: Option<EnqueueError>,
    dirs: HashMap<String, PathBuf>,
    http_results: VecDeque<std::result::Result<Response, ErrorKind>>,
    requests: Vec<HttpRequest>,
    progress: Vec<(u8, String)>,
    follow_ups: Vec<FollowUp>,
    logs: Vec<String>,
}

impl Fake {
    /// The first of three attempts of a job.
    ///
    /// It records the log lines of this thread until another fake is created on it.
    #[expect(
        clippy::new_without_default,
        reason = "it replaces the log recorder of its thread, which a default shouldn't do"
    )]
    pub fn new() -> Fake {
        let job = Job {
            id: "01934f6e-7a00-7000-8000-000000000001".into(),
            job_type: "test".into(),
            payload: "{}".into(),
            attempt: 1,
            max_attempts: 3,
        };
        let state = State {
            remaining: Duration::from_secs(30),
            checks_left: None,
            refusal: None,
            dirs: HashMap::new(),
            http_results: VecDeque::new(),
            requests: Vec::new(),
            progress: Vec::new(),
            follow_ups: Vec::new(),
            logs: Vec::new(),
        };
        let state = Rc::new(RefCell::new(state));
        record_logs(&state);
        Fake { job, state }
    }

    /// Sets the id of the job.
    pub fn job_id(mut self, id: impl Into<String>) -> Fake {
        self.job.id = id.into();
        self
    }

    /// Sets the type of the job.
    pub fn job_type(mut self, job_type: impl Into<String>) -> Fake {
        self.job.job_type = job_type.into();
        self
    }

    /// Sets the number of the attempt.
    pub fn attempt(mut self, attempt: u32) -> Fake {
        self.job.attempt = attempt;
        self
    }

    /// Sets the maximum number of attempts.
    pub fn max_attempts(mut self, attempts: u32) -> Fake {
        self.job.max_attempts = attempts;
        self
    }

    /// Sets the remaining time, which stays the same during the test.
    pub fn remaining(self, time: Duration) -> Fake {
        self.state.borrow_mut().remaining = time;
        self
    }

    /// Reports the job as cancelled.
    pub fn cancelled(self) -> Fake {
        self.cancelled_after(0)
    }

    /// Reports the job as cancelled after this many checks that it isn't.
    pub fn cancelled_after(self, checks: u32) -> Fake {
        self.state.borrow_mut().checks_left = Some(checks);
        self
    }

    /// Refuses every follow-up job with this error.
    pub fn refuses_follow_ups(self, reason: EnqueueError) -> Fake {
        self.state.borrow_mut().refusal = Some(reason);
        self
    }

    /// Grants a directory: `guest` is its path in the guest, `host` its path on the host. By default, none is granted.
    pub fn dir(self, guest: &str, host: impl Into<PathBuf>) -> Fake {
        self.state.borrow_mut().dirs.insert(guest.trim_end_matches('/').into(), host.into());
        self
    }

    /// Adds the response to the next HTTP request. Call it once for each request, in order.
    ///
    /// A request without a response panics. See [`http`](crate::http) for an example.
    pub fn http(self, response: Response) -> Fake {
        self.state.borrow_mut().http_results.push_back(Ok(response));
        self
    }

    /// Makes the next HTTP request fail, instead of adding a response with [`http`](Fake::http).
    ///
    /// ```
    /// use jobq_guest::http::{self, ErrorKind};
    /// use jobq_guest::testing::Fake;
    /// use jobq_guest::{Context, Error, Result};
    ///
    /// fn ping((): (), ctx: &Context) -> Result<u16> {
    ///     Ok(http::get("https://example.com/ping").send(ctx)?.status())
    /// }
    ///
    /// let fake = Fake::new().http_fails(ErrorKind::Connect("connection refused".into())).http(http::Response::new(204));
    /// let message = "GET https://example.com: failed to connect: connection refused";
    /// assert_eq!(fake.run(ping, "null"), Err(Error::Retry(message.into())));
    /// assert_eq!(fake.run(ping, "null"), Ok("204".into()));
    /// ```
    pub fn http_fails(self, why: ErrorKind) -> Fake {
        self.state.borrow_mut().http_results.push_back(Err(why));
        self
    }

    /// Runs a handler as the host does, with a payload and a result in JSON.
    ///
    /// # Errors
    /// Any answer of the handler other than a result.
    pub fn run<P: FromJson, A: ToJson>(
        &self,
        handler: impl Fn(P, &Context) -> Result<A>,
        payload: &str,
    ) -> Result<String> {
        let mut ctx = self.context();
        ctx.set_payload(payload);
        attempt(handler, &ctx)
    }

    /// Creates a context, to call the handler or parts of it directly.
    pub fn context(&self) -> Context {
        Context::new(self.job.clone(), Recorder(Rc::clone(&self.state)))
    }

    /// The progress reports, as percentage and message.
    pub fn progress(&self) -> Vec<(u8, String)> {
        self.state.borrow().progress.clone()
    }

    /// The HTTP requests that were sent.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.state.borrow().requests.clone()
    }

    /// The follow-up jobs. A real host discards them unless the attempt completes; the fake keeps them.
    pub fn follow_ups(&self) -> Vec<FollowUp> {
        self.state.borrow().follow_ups.clone()
    }

    /// The lines logged with the [`log`](mod@log) crate on the thread that created this, as `level: message`.
    ///
    /// Empty if the tests installed another logger before they created the first fake.
    pub fn logs(&self) -> Vec<String> {
        self.state.borrow().logs.clone()
    }
}

/// An HTTP request sent by a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// The URL without a fragment, with host and scheme in lower case.
    pub url: String,
    /// The headers in the order the handler set them, without those the host adds.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
    /// The time limit for the complete response.
    pub timeout: Duration,
}

impl HttpRequest {
    /// The first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// The body as text; invalid UTF-8 is replaced by `�`.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

impl Recorder {
    pub(crate) fn remaining(&self) -> Duration {
        self.0.borrow().remaining
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        match &mut self.0.borrow_mut().checks_left {
            None => false,
            Some(0) => true,
            Some(checks) => {
                *checks -= 1;
                false
            }
        }
    }

    /// The host path of a granted directory; empty if it isn't granted.
    pub(crate) fn directory(&self, guest: &str) -> PathBuf {
        self.0.borrow().dirs.get(guest.trim_end_matches('/')).cloned().unwrap_or_default()
    }

    /// Returns the next result. Applies the request's limit on the body, as a host would.
    pub(crate) fn http(&self, request: Outgoing, _: &str) -> std::result::Result<Response, ErrorKind> {
        let Outgoing { method, url, headers, body, timeout, max_body, cut } = request;
        let url = url.to_string();
        let mut state = self.0.borrow_mut();
        let Some(result) = state.http_results.pop_front() else {
            panic!(
                "the handler sent {method} {url}, but the fake has no response left; add one with Fake::new().http(…)"
            )
        };
        state.requests.push(HttpRequest { method, url, headers, body: body.unwrap_or_default(), timeout });
        match result {
            Ok(response) if response.bytes().len() > max_body => {
                if !cut && response.status() < 400 {
                    return Err(ErrorKind::TooLong(max_body));
                }
                let start = response.bytes()[..max_body].to_vec();
                Ok(response.with_body(start))
            }
            other => other,
        }
    }

    pub(crate) fn progress(&self, percent: u8, message: &str) {
        self.0.borrow_mut().progress.push((percent, message.into()));
    }

    pub(crate) fn enqueue(&self, job: FollowUp) -> std::result::Result<String, EnqueueError> {
        let mut state = self.0.borrow_mut();
        if let Some(reason) = &state.refusal {
            return Err(reason.clone());
        }
        state.follow_ups.push(job);
        Ok(format!("01934f6e-7a00-7000-9000-{:012}", state.follow_ups.len()))
    }
}

thread_local! {
    /// The state that records the log lines of this thread.
    static RECORDING: RefCell<Weak<RefCell<State>>> = const { RefCell::new(Weak::new()) };
}

fn record_logs(state: &Rc<RefCell<State>>) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if log::set_logger(&RecordingLogger).is_ok() {
            log::set_max_level(LevelFilter::Debug);
        }
    });
    RECORDING.set(Rc::downgrade(state));
}

/// Passes each line to the fake of its thread.
struct RecordingLogger;

impl Log for RecordingLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("{}: {}", record.level().as_str().to_ascii_lowercase(), record.args());
        if let Some(state) = RECORDING.with_borrow(Weak::upgrade) {
            state.borrow_mut().logs.push(line);
        }
    }

    fn flush(&self) {}
}
