//! A fake attempt, to test handlers natively: `cargo test`, no WebAssembly, no daemon.

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

/// A fake attempt: says what it is told to say and records what the handler asks for.
///
/// By default it is the first of three attempts with 30 seconds left, nobody cancels it, and every follow-up is taken.
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
/// A panic of the handler is a panic of the test.
#[derive(Debug)]
pub struct Fake {
    job: Job,
    state: Rc<RefCell<State>>,
}

/// The fake as its contexts see it.
pub(crate) struct Recorder(Rc<RefCell<State>>);

/// What the handler is told, and what it asked for.
#[derive(Debug)]
struct State {
    remaining: Duration,
    /// How often the handler still hears that nobody has cancelled; `None` is for ever.
    looks_left: Option<u32>,
    refusal: Option<EnqueueError>,
    dirs: HashMap<String, PathBuf>,
    http_answers: VecDeque<std::result::Result<Response, ErrorKind>>,
    requests: Vec<HttpRequest>,
    progress: Vec<(u8, String)>,
    follow_ups: Vec<FollowUp>,
    logs: Vec<String>,
}

impl Fake {
    /// The first of three attempts of a job.
    ///
    /// It takes the lines that are logged on this thread, until the next one is made.
    #[expect(clippy::new_without_default, reason = "it takes over the log of its thread, which a default should not")]
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
            looks_left: None,
            refusal: None,
            dirs: HashMap::new(),
            http_answers: VecDeque::new(),
            requests: Vec::new(),
            progress: Vec::new(),
            follow_ups: Vec::new(),
            logs: Vec::new(),
        };
        let state = Rc::new(RefCell::new(state));
        take_logs(&state);
        Fake { job, state }
    }

    /// Says another id.
    pub fn job_id(mut self, id: impl Into<String>) -> Fake {
        self.job.id = id.into();
        self
    }

    /// Says another type.
    pub fn job_type(mut self, job_type: impl Into<String>) -> Fake {
        self.job.job_type = job_type.into();
        self
    }

    /// Is the attempt of this number.
    pub fn attempt(mut self, attempt: u32) -> Fake {
        self.job.attempt = attempt;
        self
    }

    /// Allows so many attempts.
    pub fn max_attempts(mut self, attempts: u32) -> Fake {
        self.job.max_attempts = attempts;
        self
    }

    /// Says that so much time is left. It does not pass.
    pub fn remaining(self, time: Duration) -> Fake {
        self.state.borrow_mut().remaining = time;
        self
    }

    /// Says that the job was cancelled.
    pub fn cancelled(self) -> Fake {
        self.cancelled_after(0)
    }

    /// Says that the job was cancelled, when the handler has looked so many times and found that it was not.
    pub fn cancelled_after(self, looks: u32) -> Fake {
        self.state.borrow_mut().looks_left = Some(looks);
        self
    }

    /// Takes no follow-up, for this reason.
    pub fn refuses_follow_ups(self, reason: EnqueueError) -> Fake {
        self.state.borrow_mut().refusal = Some(reason);
        self
    }

    /// Grants a directory: `guest` is its name for the handler, `host` where it is. Without this there is none.
    pub fn dir(self, guest: &str, host: impl Into<PathBuf>) -> Fake {
        self.state.borrow_mut().dirs.insert(guest.trim_end_matches('/').into(), host.into());
        self
    }

    /// Answers the next HTTP request that has no answer yet: once for each request, in their order.
    ///
    /// A request without an answer is a panic. See [`http`](crate::http) for an example.
    pub fn http(self, answer: Response) -> Fake {
        self.state.borrow_mut().http_answers.push_back(Ok(answer));
        self
    }

    /// Has the next HTTP request that has no answer yet fail.
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
        self.state.borrow_mut().http_answers.push_back(Err(why));
        self
    }

    /// Runs a handler as the host would: from the text of a payload to the text of a result.
    ///
    /// # Errors
    /// Any other answer of the handler.
    pub fn run<P: FromJson, A: ToJson>(
        &self,
        handler: impl Fn(P, &Context) -> Result<A>,
        payload: &str,
    ) -> Result<String> {
        let mut ctx = self.context();
        ctx.set_payload(payload);
        attempt(handler, &ctx)
    }

    /// A context, to call the handler or a part of it directly.
    pub fn context(&self) -> Context {
        Context::new(self.job.clone(), Recorder(Rc::clone(&self.state)))
    }

    /// The progress that was shown, each with its percentage and message.
    pub fn progress(&self) -> Vec<(u8, String)> {
        self.state.borrow().progress.clone()
    }

    /// The HTTP requests that were sent.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.state.borrow().requests.clone()
    }

    /// The follow-ups that were enqueued. A host drops them unless the handler completes; the fake keeps them.
    pub fn follow_ups(&self) -> Vec<FollowUp> {
        self.state.borrow().follow_ups.clone()
    }

    /// What was logged through the [`log`](mod@log) crate on the thread that made this, each as `level: message`.
    ///
    /// Empty if the tests have installed another logger before the first fake was made.
    pub fn logs(&self) -> Vec<String> {
        self.state.borrow().logs.clone()
    }
}

/// An HTTP request that a handler has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRequest {
    /// As in `POST`.
    pub method: String,
    /// Without a fragment; host and scheme in lower case.
    pub url: String,
    /// In the order in which the handler set them, without those that the host adds.
    pub headers: Vec<(String, String)>,
    /// Empty if there is none.
    pub body: Vec<u8>,
    /// Within which the whole answer had to be there.
    pub timeout: Duration,
}

impl HttpRequest {
    /// The first header of this name, however it is capitalized.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// The body as text; what is not UTF-8 is replaced by `�`.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

impl Recorder {
    pub(crate) fn remaining(&self) -> Duration {
        self.0.borrow().remaining
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        match &mut self.0.borrow_mut().looks_left {
            None => false,
            Some(0) => true,
            Some(looks) => {
                *looks -= 1;
                false
            }
        }
    }

    /// Where a granted directory is; one that is not granted is nowhere.
    pub(crate) fn place(&self, guest: &str) -> PathBuf {
        self.0.borrow().dirs.get(guest.trim_end_matches('/')).cloned().unwrap_or_default()
    }

    /// Holds the answer to what the request allows, as a host would.
    pub(crate) fn http(&self, request: Outgoing, _: &str) -> std::result::Result<Response, ErrorKind> {
        let Outgoing { method, url, headers, body, timeout, max_body, cut } = request;
        let url = url.to_string();
        let mut state = self.0.borrow_mut();
        let Some(answer) = state.http_answers.pop_front() else {
            panic!("the handler sent {method} {url}, and the fake has no answer left: Fake::new().http(…) gives it one")
        };
        state.requests.push(HttpRequest { method, url, headers, body: body.unwrap_or_default(), timeout });
        match answer {
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
    /// Who takes the lines of this thread.
    static TAKER: RefCell<Weak<RefCell<State>>> = const { RefCell::new(Weak::new()) };
}

fn take_logs(state: &Rc<RefCell<State>>) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if log::set_logger(&ToTaker).is_ok() {
            log::set_max_level(LevelFilter::Debug);
        }
    });
    TAKER.set(Rc::downgrade(state));
}

/// Hands each line to the fake of its thread.
struct ToTaker;

impl Log for ToTaker {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("{}: {}", record.level().as_str().to_ascii_lowercase(), record.args());
        if let Some(state) = TAKER.with_borrow(Weak::upgrade) {
            state.borrow_mut().logs.push(line);
        }
    }

    fn flush(&self) {}
}
