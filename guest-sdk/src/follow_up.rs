//! Jobs that come into being with the completion of this one.

use std::fmt;
use std::time::Duration;

use crate::host::Host;
use crate::json::ToJson;

/// A job to be enqueued. It exists once this attempt completes, or not at all.
///
/// What is not said is as the settings of its type say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowUp {
    /// Its type, which `enqueue` of the handler's own type in jobq.toml has to name.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// Higher is claimed first.
    pub priority: Option<i32>,
    /// From the completion of this attempt.
    pub delay: Option<Duration>,
    /// Attempts before it is dead.
    pub max_attempts: Option<u32>,
    /// At most one unfinished job holds this key.
    pub key: Option<String>,
}

/// Builds a [`FollowUp`]; made by [`Context::enqueue`](crate::Context::enqueue).
#[must_use = "there is no follow-up before `send`"]
pub struct Enqueue<'a> {
    host: &'a Host,
    job: FollowUp,
    unwritable: Option<String>,
}

impl<'a> Enqueue<'a> {
    pub(crate) fn new(host: &'a Host, job_type: &str) -> Enqueue<'a> {
        let (job_type, payload) = (job_type.into(), "{}".into());
        let job = FollowUp { job_type, payload, priority: None, delay: None, max_attempts: None, key: None };
        Enqueue { host, job, unwritable: None }
    }

    /// Its payload; `{}` without this.
    pub fn payload(mut self, payload: impl ToJson) -> Self {
        match payload.to_json() {
            Ok(json) if json.is_empty() => self.job.payload = "null".into(),
            Ok(json) => self.job.payload = json,
            Err(error) => self.unwritable = Some(error.to_string()),
        }
        self
    }

    /// Its priority, -32768 to 32767; higher is claimed first.
    pub fn priority(mut self, priority: i32) -> Self {
        self.job.priority = Some(priority);
        self
    }

    /// How long after the completion of this attempt it may start.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.job.delay = Some(delay);
        self
    }

    /// Attempts before it is dead.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.job.max_attempts = Some(attempts);
        self
    }

    /// At most one unfinished job holds this key; if there is one, nothing is added and `send` returns its id.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.job.key = Some(key.into());
        self
    }

    /// Hands the job over and returns its id.
    ///
    /// # Errors
    /// When the host does not take it: the settings do not allow it, its type does not exist, or it is too much.
    /// Nothing of it remains then, and the handler may go on.
    pub fn send(self) -> Result<String, EnqueueError> {
        match self.unwritable {
            Some(why) => Err(EnqueueError::Invalid(format!("failed to write its payload as JSON: {why}"))),
            None => self.host.enqueue(self.job),
        }
    }
}

/// Why a follow-up was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueError {
    /// The job type does not exist, or the payload is not JSON.
    Invalid(String),
    /// jobq.toml does not allow this job type to enqueue that one, or the attempt has enqueued too much.
    Denied(String),
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (EnqueueError::Invalid(why) | EnqueueError::Denied(why)) = self;
        write!(f, "failed to enqueue a follow-up: {why}")
    }
}

impl std::error::Error for EnqueueError {}
