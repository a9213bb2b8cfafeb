//! The ledger: one row for each attempt that has ended, the last 100 of a job, and what those attempts logged.

use std::time::Duration;

use rusqlite::{Result, params};

use super::logs;
use super::row::millis;
use super::session::Session;
use crate::queue::{AttemptRecord, Digest, JobRef, Outcome, Receipt, Timestamp};

/// Replaces an entry of the same token, which only a foreign program that set the job's token back can have left.
const INSERT: &str = r#"
INSERT OR REPLACE INTO "jobs__attempts"
  (seq, lease, attempt, outcome, error, started_at, duration_ms, fuel, peak_memory_bytes, digest)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"#;

const TRIM: &str = r#"
DELETE FROM "jobs__attempts"
WHERE seq = ?1 AND lease <= (SELECT lease FROM "jobs__attempts" WHERE seq = ?1 ORDER BY lease DESC LIMIT 1 OFFSET ?2)"#;

/// One attempt that has ended.
pub(super) struct Entry<'a> {
    pub(super) job: JobRef,
    pub(super) token: i64,
    pub(super) attempt: u32,
    pub(super) outcome: Outcome,
    pub(super) error: Option<&'a str>,
    pub(super) started_at: Timestamp,
    pub(super) duration: Duration,
    pub(super) fuel: Option<u64>,
    pub(super) peak_memory: Option<u64>,
    pub(super) digest: Option<Digest>,
}

impl Entry<'_> {
    /// For an attempt of which nobody but the table knows, the one after `attempts` that counted.
    pub(super) fn without_receipt(
        job: JobRef,
        token: i64,
        attempts: u32,
        outcome: Outcome,
        started_at: Timestamp,
        ended_at: Timestamp,
    ) -> Self {
        Self {
            job,
            token,
            attempt: attempts.saturating_add(1),
            outcome,
            error: None,
            started_at,
            duration: ended_at.since(started_at),
            fuel: None,
            peak_memory: None,
            digest: None,
        }
    }
}

/// Writes what a worker knows about the attempt it ended, its last log lines included.
pub(super) fn close(db: &Session<'_>, receipt: &Receipt, outcome: Outcome, error: Option<&str>) -> Result<()> {
    logs::append(db, &receipt.lease, receipt.attempt, &receipt.lines)?;
    let entry = Entry {
        job: receipt.lease.job,
        token: receipt.lease.token,
        attempt: receipt.attempt,
        outcome,
        error,
        started_at: started_at(db, receipt),
        duration: receipt.duration,
        fuel: receipt.fuel,
        peak_memory: receipt.peak_memory,
        digest: receipt.digest,
    };
    add(db, &entry)
}

/// When the guest of an attempt that ends now was started.
pub(super) fn started_at(db: &Session<'_>, receipt: &Receipt) -> Timestamp {
    db.now().before(receipt.duration)
}

/// Adds an entry and forgets those beyond the last 100.
pub(super) fn add(db: &Session<'_>, entry: &Entry<'_>) -> Result<()> {
    db.execute(
        INSERT,
        params![
            entry.job.seq(),
            entry.token,
            entry.attempt,
            entry.outcome.as_str(),
            entry.error,
            entry.started_at.as_millis(),
            millis(entry.duration),
            entry.fuel.map(saturated),
            entry.peak_memory.map(saturated),
            entry.digest.map(|digest| digest.0),
        ],
    )?;
    let kept = i64::try_from(AttemptRecord::KEPT).unwrap_or(i64::MAX);
    if entry.token > kept && db.execute(TRIM, [entry.job.seq(), kept])? > 0 {
        logs::trim(db, entry.job)?;
    }
    Ok(())
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
