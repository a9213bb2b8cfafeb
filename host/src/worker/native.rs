//! Handlers that are functions of the application itself: the queue without the sandbox.
//!
//! They share everything with plugins but the walls: retries, leases, timeouts, logs, progress and follow-ups are the same,
//! memory and fuel are not limited, and a function that never awaits cannot be stopped.

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
    Call, FollowUp, FollowUpError, FollowUps, Grants, GuestOutcome, Limits, Line, Report, Source, Tap,
};

/// Why a job was not completed. Any error becomes a [`Retry`](Self::Retry) by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError {
    /// Failed: again after the backoff of the type.
    Retry(String),
    /// Failed: again after this delay.
    RetryAfter(Duration, String),
    /// Failed for good: dead at once.
    Fatal(String),
    /// Not failed, not counted: again after this delay.
    Snooze(Duration),
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

/// One attempt of one job, as a function is given it.
pub struct NativeJob {
    /// Id, type, payload and the number of the attempt.
    pub call: Call,
    tap: Arc<Tap>,
    follow_ups: Arc<dyn FollowUps>,
    deadline: Instant,
}

impl NativeJob {
    /// Keeps a line with the attempt.
    pub fn log(&self, message: impl Into<String>) {
        let message = message.into();
        self.tap.push(Line { time: SystemTime::now(), source: Source::Log, level: Some("info"), message });
    }

    /// Shows how far the attempt is: 0 to 100 and a few words.
    pub fn progress(&self, percent: u8, message: impl Into<String>) {
        self.tap.report(percent.min(100), message.into());
    }

    /// Whether somebody asked for this job to be cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.tap.is_cancelled()
    }

    /// Time left before the attempt is stopped.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Adds a job that comes into being with the completion of this attempt, or not at all. Returns its id.
    ///
    /// # Errors
    /// When the job cannot be one.
    pub async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        self.follow_ups.enqueue(job).await
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<String, JobError>> + Send>>;
type Function = Arc<dyn Fn(NativeJob) -> Answer + Send + Sync>;

/// Functions by job type.
#[derive(Clone, Default)]
pub struct NativeHandlers {
    functions: HashMap<String, Function>,
    /// Never sent to: functions do not change.
    changes: Arc<watch::Sender<u64>>,
}

impl NativeHandlers {
    /// No types yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles `job_type` with `function`, whose ok value is the result of the job.
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
        tap: Arc<Tap>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> Report {
        let started = Instant::now();
        let deadline = started + limits.timeout;
        let job = NativeJob { call, tap: tap.clone(), follow_ups, deadline };
        // A task of its own, so that a panic ends the attempt and not the pool.
        let mut running = tokio::spawn((self.function)(job));
        let outcome = tokio::select! {
            ended = &mut running => match ended {
                Ok(answer) => judge(answer),
                Err(panic) => GuestOutcome::Trapped(words(panic)),
            },
            () = tokio::time::sleep_until(deadline.into()) => {
                let limit = humantime::format_duration(limits.timeout);
                GuestOutcome::TimedOut(format!("it did not end within its time limit of {limit} and was stopped"))
            }
            () = tap.wait_for_stop() => GuestOutcome::Stopped,
        };
        running.abort();
        Report { outcome, duration: started.elapsed(), fuel: None, peak_memory: 0 }
    }

    fn digest(&self) -> Option<Digest> {
        None
    }
}

fn judge(answer: Result<String, JobError>) -> GuestOutcome {
    match answer {
        Ok(result) => GuestOutcome::Completed(result),
        Err(JobError::Retry(message)) => GuestOutcome::Failed { message, after: None },
        Err(JobError::RetryAfter(delay, message)) => GuestOutcome::Failed { message, after: Some(delay) },
        Err(JobError::Fatal(message)) => GuestOutcome::Fatal(message),
        Err(JobError::Snooze(delay)) => GuestOutcome::Snoozed(delay),
    }
}

/// What a panic said.
fn words(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the handler was aborted".into() };
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the handler panicked: {}", text.unwrap_or("without a text"))
}
