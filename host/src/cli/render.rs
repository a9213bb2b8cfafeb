//! Jobs, attempts and log lines as JSON, whose shapes scripts rely on (`docs/json.md`), and as text for people.

use std::time::Duration;

use bytesize::ByteSize;
use comfy_table::{Cell, Color};
use serde::Serialize;
use serde_json::{Value, json};

use super::output::{Column, cell, table};
use super::{terminal, when};
use crate::queue::{AttemptRecord, Daemon, Job, LogLine, Outcome};

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
    attempt: u32,
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
            attempt: record.attempt,
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

impl Attempt {
    /// SHA-256 of the `.wasm` that ran.
    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

/// Attempts for people: one line each, with the first line of its error.
pub(super) fn attempts(records: &[Attempt]) -> String {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let columns = [
        Column::Whole("#"),
        Column::Whole("OUTCOME"),
        Column::Extra("STARTED"),
        Column::Whole("TOOK"),
        Column::Spare("FUEL"),
        Column::Spare("MEMORY"),
        Column::Spare("DIGEST"),
        Column::Cut("ERROR"),
    ];
    let row = |record: &Attempt| {
        let colour = Outcome::parse(record.outcome).map_or(Color::Reset, terminal::of_outcome);
        [
            Cell::new(record.attempt),
            Cell::new(record.outcome).fg(colour),
            Cell::new(&record.started_at),
            Cell::new(when::took(Duration::from_millis(record.duration_ms))),
            Cell::new(dash(record.fuel.map(count))),
            Cell::new(dash(record.peak_memory_bytes.map(|bytes| ByteSize(bytes).display().iec().to_string()))),
            Cell::new(dash(record.digest.as_deref().map(short_digest))),
            Cell::new(first_line(record.error.as_deref().unwrap_or(""), 120)),
        ]
    };
    table(columns, records.iter().map(row))
}

/// The first characters of a digest: enough for people to tell versions apart.
pub(super) fn short_digest(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// The first line with text, as a cell of at most `most` characters. A line that ends in a colon, as in the message of a Rust
/// panic, is joined with the next.
pub(super) fn first_line(text: &str, most: usize) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines.next().unwrap_or_default() {
        line if line.ends_with(':') => cell(format!("{line} {}", lines.next().unwrap_or_default()).trim_end(), most),
        line => cell(line, most),
    }
}

/// A large number in three digits: `950`, `12.3k`, `4.56M`.
pub(super) fn count(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, "");
    for next in ["k", "M", "G", "T", "P", "E"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    let digits = if unit.is_empty() || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{unit}")
}

/// A daemon as one object.
#[derive(Debug, Serialize)]
pub(super) struct DaemonObject {
    worker: String,
    pid: u32,
    started_at: String,
    seen_at: String,
    slots: u32,
    busy: u32,
}

impl From<&Daemon> for DaemonObject {
    fn from(daemon: &Daemon) -> Self {
        Self {
            worker: daemon.worker.clone(),
            pid: daemon.pid,
            started_at: daemon.started_at.to_string(),
            seen_at: daemon.seen_at.to_string(),
            slots: daemon.slots,
            busy: daemon.busy,
        }
    }
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

/// A log line for people. The further lines of a message, such as a traceback, are indented below the first.
pub(super) fn log_text(line: &LogLine) -> String {
    let kind = line.level.unwrap_or_else(|| line.source.as_str());
    let start = format!("{} #{} {kind:<6} ", line.time, line.attempt);
    start.clone() + &indented(&line.message, start.chars().count())
}

/// Text for a terminal: its lines are kept, everything else that moves the cursor is not.
pub(super) fn paragraph(text: &str) -> String {
    indented(text, 0)
}

/// The same, with spaces in front of each line but the first.
pub(super) fn indented(text: &str, spaces: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| cell(&line.replace('\t', "    "), usize::MAX)).collect();
    lines.join(&format!("\n{:spaces$}", ""))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn large_numbers_keep_three_digits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.00k"),
            (12_345, "12.3k"),
            (999_499, "999k"),
            (999_999, "1.00M"),
            (1_000_000_000_000, "1.00T"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(count(number), text, "{number}");
        }
    }
}
