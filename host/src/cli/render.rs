//! The shapes of jobs, attempts and log lines in JSON, which scripts rely on, and the same for people.

use serde::Serialize;
use serde_json::{Value, json};

use super::output::{cell, table};
use crate::queue::{AttemptRecord, Job, LogLine};

/// A job as one object: the columns of the table, instants in RFC 3339, absent ones null.
pub(super) fn job(job: &Job) -> Value {
    json!({
        "id": job.id.as_str(),
        "type": job.job_type,
        "payload": job.payload,
        "status": job.status.as_str(),
        "priority": job.priority,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "timeout_ms": job.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        "scheduled_at": job.scheduled_at.to_string(),
        "started_at": job.started_at.map(|at| at.to_string()),
        "completed_at": job.completed_at.map(|at| at.to_string()),
        "result": job.result,
        "error": job.error,
        "created_at": job.created_at.to_string(),
        "unique_key": job.key,
        "lease": job.lease,
        "lease_until": job.lease_until.map(|at| at.to_string()),
        "worker": job.worker,
        "progress": job.progress.as_ref().map(|(percent, message)| json!({"percent": percent, "message": message})),
    })
}

/// An attempt as one object.
#[derive(Debug, Serialize)]
pub(super) struct Attempt {
    number: u32,
    outcome: &'static str,
    error: Option<String>,
    lease: i64,
    started_at: String,
    duration_ms: u64,
    fuel: Option<u64>,
    peak_memory_bytes: Option<u64>,
    digest: Option<String>,
}

impl From<AttemptRecord> for Attempt {
    fn from(record: AttemptRecord) -> Self {
        Self {
            number: record.attempt,
            outcome: record.outcome.as_str(),
            error: record.error,
            lease: record.lease,
            started_at: record.started_at.to_string(),
            duration_ms: u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
            fuel: record.fuel,
            peak_memory_bytes: record.peak_memory,
            digest: record.digest.map(|digest| digest.to_string()),
        }
    }
}

/// Attempts for people.
pub(super) fn attempts(records: &[Attempt]) -> String {
    let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let header = ["#", "OUTCOME", "STARTED", "MS", "FUEL", "PEAK BYTES", "ERROR"];
    table(
        header,
        records.iter().map(|record| {
            [
                record.number.to_string(),
                record.outcome.to_owned(),
                record.started_at.clone(),
                record.duration_ms.to_string(),
                number(record.fuel),
                number(record.peak_memory_bytes),
                cell(record.error.as_deref().unwrap_or(""), 60),
            ]
        }),
    )
}

/// A log line as one object.
pub(super) fn log_line(line: &LogLine) -> Value {
    json!({
        "attempt": line.attempt,
        "lease": line.lease,
        "time": line.time.to_string(),
        "source": line.source.as_str(),
        "level": line.level,
        "message": line.message,
    })
}

/// A log line for people.
pub(super) fn log_text(line: &LogLine) -> String {
    let kind = line.level.unwrap_or_else(|| line.source.as_str());
    format!("{} #{} {kind:<6} {}", line.time, line.attempt, cell(&line.message, usize::MAX))
}

/// Text for a terminal, its lines kept, without anything else that moves the cursor.
pub(super) fn paragraph(text: &str) -> String {
    text.lines().map(|line| cell(line, usize::MAX)).collect::<Vec<_>>().join("\n")
}
