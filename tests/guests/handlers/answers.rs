//! Proves what becomes of each answer a handler may give.

use guests::{DelayedRetry, Job, JobError};

guests::handler!(answer);

#[derive(serde::Deserialize)]
struct Payload {
    #[serde(rename = "do")]
    kind: Kind,
    /// The result or the error text.
    #[serde(default)]
    message: String,
    /// The delay of `retry-after` and `snooze`.
    #[serde(default)]
    ms: u64,
    /// Answer so up to this attempt, and ok afterwards. Default: always.
    times: Option<u32>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Ok,
    Retry,
    RetryAfter,
    Fatal,
    Snooze,
}

fn answer(job: Job) -> Result<String, JobError> {
    let Payload { kind, message, ms, times } = guests::payload(&job)?;
    if times.is_some_and(|times| job.attempt > times) {
        return Ok(message);
    }
    match kind {
        Kind::Ok => Ok(message),
        Kind::Retry => Err(JobError::Retry(message)),
        Kind::RetryAfter => Err(JobError::RetryAfter(DelayedRetry { message, after_ms: ms })),
        Kind::Fatal => Err(JobError::Fatal(message)),
        Kind::Snooze => Err(JobError::Snooze(ms)),
    }
}
