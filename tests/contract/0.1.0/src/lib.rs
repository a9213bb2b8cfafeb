//! A handler for `jobq:handler@0.1.0` that uses every import and gives every answer. The payload, a JSON string, says which.

wit_bindgen::generate!({ path: "wit", world: "job-handler" });

use exports::jobq::handler::handler::{Guest, Job};
use jobq::handler::log::Level;
use jobq::handler::queue::{EnqueueError, NewJob};
use jobq::handler::types::{DelayedRetry, JobError};
use jobq::handler::{context, log, queue};

struct Handler;

export!(Handler);

impl Guest for Handler {
    fn handle(job: Job) -> Result<String, JobError> {
        match job.payload.trim_matches('"') {
            "imports" => Ok(imports(&job)),
            "retry" => Err(JobError::Retry("again".into())),
            "retry-after" => Err(JobError::RetryAfter(DelayedRetry { message: "later".into(), after_ms: 1500 })),
            "fatal" => Err(JobError::Fatal("never".into())),
            "snooze" => Err(JobError::Snooze(2500)),
            other => Ok(other.to_owned()),
        }
    }
}

/// Calls everything there is, and tells what came back.
fn imports(job: &Job) -> String {
    for (level, message) in [
        (Level::Debug, "debug"),
        (Level::Info, "info"),
        (Level::Warn, "warn"),
        (Level::Error, "error"),
    ] {
        log::write(level, message);
    }
    context::progress(42, "under way");
    let remaining = context::remaining_ms() > 0;
    let cancelled = context::is_cancelled();
    let full = NewJob {
        job_type: "next".into(),
        payload: "{}".into(),
        priority: Some(-3),
        delay_ms: Some(1000),
        max_attempts: Some(7),
        unique_key: Some("key".into()),
    };
    let none =
        NewJob { job_type: "other".into(), payload: "1".into(), priority: None, delay_ms: None, max_attempts: None, unique_key: None };
    let enqueued = enqueue(&full);
    let denied = enqueue(&none);
    let Job { id, job_type, payload, attempt, max_attempts } = job;
    format!("{id} {job_type} {payload} {attempt}/{max_attempts} remaining={remaining} cancelled={cancelled} {enqueued} {denied}")
}

fn enqueue(job: &NewJob) -> &'static str {
    match queue::enqueue(job) {
        Ok(_) => "enqueued",
        Err(EnqueueError::Invalid(_)) => "invalid",
        Err(EnqueueError::Denied(_)) => "denied",
    }
}
