//! The attempts of one job, the last 100, and their log lines.

use std::time::Duration;

use super::table::Row;
use crate::queue::{AttemptRecord, LogLine, Outcome, Receipt, Timestamp};

/// The attempts and log lines of one job.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) attempts: Vec<AttemptRecord>,
    pub(super) lines: Vec<LogLine>,
}

impl History {
    pub(super) fn log(&mut self, lease: i64, attempt: u32, lines: Vec<LogLine>) {
        self.lines.extend(lines.into_iter().map(|line| LogLine { lease, attempt, ..line }));
    }

    fn add(&mut self, entry: AttemptRecord) {
        self.attempts.push(entry);
        if self.attempts.len() > AttemptRecord::KEPT {
            self.attempts.remove(0);
            let oldest = self.attempts.first().map_or(i64::MIN, |entry| entry.lease);
            self.lines.retain(|line| line.lease >= oldest);
        }
    }
}

impl Row {
    /// Adds the attempt that a worker ends `now`, and its last log lines.
    pub(super) fn end_attempt(&mut self, receipt: Receipt, outcome: Outcome, error: Option<String>, now: Timestamp) {
        let Receipt { lease, attempt, duration, fuel, peak_memory, digest, lines } = receipt;
        self.history.log(lease.token, attempt, lines);
        let (started_at, duration) = (now.before(duration), whole_millis(duration));
        self.job.started_at = Some(started_at);
        let lease = lease.token;
        self.history.add(AttemptRecord {
            attempt,
            outcome,
            error,
            lease,
            started_at,
            duration,
            fuel,
            peak_memory,
            digest,
        });
    }

    /// Adds the running attempt, which ends `now` without a receipt: its worker was lost or the job was cancelled.
    pub(super) fn end_attempt_without_receipt(&mut self, outcome: Outcome, error: Option<String>, now: Timestamp) {
        let started_at = self.job.started_at.unwrap_or(now);
        self.history.add(AttemptRecord {
            attempt: self.job.attempts.saturating_add(1),
            outcome,
            error,
            lease: self.job.lease,
            started_at,
            duration: now.since(started_at),
            fuel: None,
            peak_memory: None,
            digest: None,
        });
    }

    /// Restores worker and start to before the attempt, which never started.
    pub(super) fn forget_attempt(&mut self) {
        self.job.worker = None;
        self.job.started_at = self.history.attempts.last().map(|entry| entry.started_at);
    }
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
