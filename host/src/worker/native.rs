//! Handlers that are functions of the embedding application: the queue without the sandbox.
//!
//! Retries, leases, timeouts, logs, progress and follow-ups work as for plugins. Memory and fuel are not limited, and a
//! function that never awaits can't be stopped.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use tokio::sync::watch;

use super::handlers::{Handler, Handlers};
use crate::queue::{Digest, PluginReport, Timestamp};
use crate::sandbox::{
    AttemptHandle, AttemptReport, Call, FollowUp, FollowUpError, FollowUps, Grants, GuestOutcome, Limits, Line, Source,
};

/// Why a job was not completed. Any error becomes a [`Retry`](Self::Retry) by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError {
    /// Failed: try again after the backoff of the type.
    Retry(String),
    /// Failed: try again after this delay.
    RetryAfter(Duration, String),
    /// Failed permanently: the job is dead at once.
    Fatal(String),
    /// Not failed and not counted: call again after this delay.
    Snooze(Duration),
}

impl From<JobError> for GuestOutcome {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Retry(message) => Self::Failed { message, after: None },
            JobError::RetryAfter(delay, message) => Self::Failed { message, after: Some(delay) },
            JobError::Fatal(message) => Self::Fatal(message),
            JobError::Snooze(delay) => Self::Snoozed(delay),
        }
    }
}

impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::Retry(message)
    }
}

/// One attempt of one job, the argument of a handler function.
pub struct NativeJob {
    /// Id, type, payload and attempt number.
    pub call: Call,
    handle: Arc<AttemptHandle>,
    follow_ups: Arc<dyn FollowUps>,
    deadline: Instant,
}

impl NativeJob {
    /// Adds a line to the log of the attempt.
    pub fn log(&self, message: impl Into<String>) {
        let message = message.into();
        self.handle.push(Line { time: SystemTime::now(), source: Source::Log, level: Some("info"), message });
    }

    /// Sets the progress of the attempt: 0 to 100 and a short message.
    pub fn progress(&self, percent: u8, message: impl Into<String>) {
        self.handle.report(percent.min(100), message.into());
    }

    /// Whether cancelling this job was requested.
    pub fn is_cancelled(&self) -> bool {
        self.handle.is_cancelled()
    }

    /// Time left before the attempt is stopped.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Adds a job that is created together with the completion of this attempt, or not at all. Returns its id.
    ///
    /// # Errors
    /// When the job is invalid.
    pub async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        self.follow_ups.enqueue(job).await
    }
}

type FunctionResult = Pin<Box<dyn Future<Output = Result<String, JobError>> + Send>>;
type Function = Arc<dyn Fn(NativeJob) -> FunctionResult + Send + Sync>;

/// Functions by job type.
#[derive(Clone, Default)]
pub struct NativeHandlers {
    functions: HashMap<String, Function>,
    /// Never sent to, because functions don't change.
    changes: Arc<watch::Sender<u64>>,
}

impl NativeHandlers {
    /// No types yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles `job_type` with `function`, which returns the result of the job.
    #[must_use]
    pub fn on<F, A>(mut self, job_type: impl Into<String>, function: F) -> Self
    where
        F: Fn(NativeJob) -> A + Send + Sync + 'static,
        A: Future<Output = Result<String, JobError>> + Send + 'static,
    {
        self.functions.insert(job_type.into(), Arc::new(move |job| Box::pin(function(job))));
        self
    }
}

impl fmt::Debug for NativeHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.functions.keys()).finish()
    }
}

impl Handlers for NativeHandlers {
    fn serving(&self) -> Vec<String> {
        self.functions.keys().cloned().collect()
    }

    fn current(&self, job_type: &str) -> Option<Arc<dyn Handler>> {
        let function = self.functions.get(job_type)?.clone();
        Some(Arc::new(Native { function }))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn report(&self) -> Vec<PluginReport> {
        let report = |job_type: &String| PluginReport {
            job_type: job_type.clone(),
            file: "(a function)".into(),
            state: "serving".into(),
            digest: None,
            reason: None,
            since: Timestamp::now(),
            attempts: 0,
        };
        self.functions.keys().map(report).collect()
    }
}

struct Native {
    function: Function,
}

#[async_trait]
impl Handler for Native {
    async fn run(
        &self,
        call: Call,
        limits: &Limits,
        _grants: &Grants,
        handle: Arc<AttemptHandle>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> AttemptReport {
        let started = Instant::now();
        let deadline = started + limits.timeout;
        let job = NativeJob { call, handle: handle.clone(), follow_ups, deadline };
        // In a task of its own, so that a panic ends the attempt and not the pool.
        let mut running = tokio::spawn((self.function)(job));
        let outcome = tokio::select! {
            ended = &mut running => match ended {
                Ok(Ok(result)) => GuestOutcome::Completed(result),
                Ok(Err(error)) => error.into(),
                Err(panic) => GuestOutcome::Trapped(panic_message(panic)),
            },
            () = tokio::time::sleep_until(deadline.into()) => {
                let limit = humantime::format_duration(limits.timeout);
                GuestOutcome::TimedOut(format!("it reached its time limit of {limit}"))
            }
            () = handle.wait_for_stop() => GuestOutcome::Stopped,
        };
        running.abort();
        AttemptReport { outcome, duration: started.elapsed(), fuel: None, peak_memory: 0 }
    }

    fn digest(&self) -> Option<Digest> {
        None
    }
}

fn panic_message(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the handler was aborted".into() };
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.map_or_else(|| "the handler panicked".to_owned(), |text| format!("the handler panicked: {text}"))
}
