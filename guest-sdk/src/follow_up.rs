//! Follow-up jobs, enqueued when this attempt completes.

use std::fmt;
use std::time::Duration;

use crate::host::Host;
use crate::json::ToJson;

/// A follow-up job. It is enqueued when this attempt completes.
///
/// Fields that are `None` take the defaults of the job's type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowUp {
    /// Its type, which must be listed in `enqueue` under the handler's own type in jobq.toml.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// Jobs with a higher priority are claimed first.
    pub priority: Option<i32>,
    /// Delay from the completion of this attempt.
    pub delay: Option<Duration>,
    /// The number of attempts after which it is dead.
    pub max_attempts: Option<u32>,
    /// At most one unfinished job may have this key.
    pub key: Option<String>,
}

/// Builder of a [`FollowUp`], made by [`Context::enqueue`](crate::Context::enqueue).
#[must_use = "call `send` to enqueue the follow-up job"]
pub struct Enqueue<'a> {
    host: &'a Host,
    job: FollowUp,
    payload_error: Option<String>,
}

impl<'a> Enqueue<'a> {
    pub(crate) fn new(host: &'a Host, job_type: &str) -> Enqueue<'a> {
        let (job_type, payload) = (job_type.into(), "{}".into());
        let job = FollowUp { job_type, payload, priority: None, delay: None, max_attempts: None, key: None };
        Enqueue { host, job, payload_error: None }
    }

    /// Sets the payload. Defaults to `{}`.
    pub fn payload(mut self, payload: impl ToJson) -> Self {
        match payload.to_json() {
            Ok(json) if json.is_empty() => self.job.payload = "null".into(),
            Ok(json) => self.job.payload = json,
            Err(error) => self.payload_error = Some(error.to_string()),
        }
        self
    }

    /// Sets the priority, -32768 to 32767. Jobs with a higher priority are claimed first.
    pub fn priority(mut self, priority: i32) -> Self {
        self.job.priority = Some(priority);
        self
    }

    /// Sets how long after the completion of this attempt it may start.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.job.delay = Some(delay);
        self
    }

    /// Sets the number of attempts after which it is dead.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.job.max_attempts = Some(attempts);
        self
    }

    /// Sets a unique key. If an unfinished job has this key already, nothing is enqueued, and `send` returns the id of that job.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.job.key = Some(key.into());
        self
    }

    /// Passes the job to the host and returns its id.
    ///
    /// # Errors
    /// If the host doesn't accept the job: jobq.toml doesn't allow it, its type doesn't exist, or the attempt has enqueued too
    /// much. The handler may continue; the job isn't enqueued.
    pub fn send(self) -> Result<String, EnqueueError> {
        match self.payload_error {
            Some(why) => Err(EnqueueError::Invalid(format!("failed to serialize its payload as JSON: {why}"))),
            None => self.host.enqueue(self.job),
        }
    }
}

/// Why a follow-up job wasn't accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueError {
    /// The job type doesn't exist, or the payload isn't JSON.
    Invalid(String),
    /// jobq.toml doesn't allow this job type to enqueue that one, or the attempt has enqueued too much.
    Denied(String),
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (EnqueueError::Invalid(why) | EnqueueError::Denied(why)) = self;
        write!(f, "failed to enqueue a follow-up job: {why}")
    }
}

impl std::error::Error for EnqueueError {}
