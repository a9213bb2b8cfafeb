//! The attempts table (`jobs__attempts`): one row for each attempt that has ended, the last 100 of each job.

use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::session::Session;
use super::{find, logs, row};
use crate::queue::{AttemptRecord, Digest, Id, Job, JobRef, Outcome, Receipt, Timestamp};

/// Replaces a row with the same token. Only a foreign program that reset the job's token can have left one.
const INSERT: &str = r#"
INSERT OR REPLACE INTO "jobs__attempts"
  (seq, lease, attempt, outcome, error, started_at, duration_ms, fuel, peak_memory_bytes, digest)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"#;

const TRIM: &str = r#"
DELETE FROM "jobs__attempts"
WHERE seq = ?1 AND lease <= (SELECT lease FROM "jobs__attempts" WHERE seq = ?1 ORDER BY lease DESC LIMIT 1 OFFSET ?2)"#;

const OF_JOB: &str = r#"
SELECT attempt, outcome, error, lease, started_at, duration_ms, fuel, peak_memory_bytes, digest FROM "jobs__attempts"
WHERE seq = (SELECT seq FROM "jobs" WHERE id = ?1)
ORDER BY lease"#;

/// A row to add.
pub(super) struct NewAttempt<'a> {
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

impl NewAttempt<'_> {
    /// For an attempt without a receipt: its worker was lost or the job was cancelled. `attempts` is the count before it.
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

/// Adds the attempt that a worker has just ended, and its last log lines.
pub(super) fn add_receipt(db: &Session<'_>, receipt: &Receipt, outcome: Outcome, error: Option<&str>) -> Result<()> {
    logs::append(db, &receipt.lease, receipt.attempt, &receipt.lines)?;
    let attempt = NewAttempt {
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
    add(db, &attempt)
}

/// When the guest of an attempt that ends now was started.
pub(super) fn started_at(db: &Session<'_>, receipt: &Receipt) -> Timestamp {
    db.now().before(receipt.duration)
}

/// Adds a row and deletes those beyond the last 100 of the job.
pub(super) fn add(db: &Session<'_>, attempt: &NewAttempt<'_>) -> Result<()> {
    db.execute(
        INSERT,
        params![
            attempt.job.seq(),
            attempt.token,
            attempt.attempt,
            attempt.outcome.as_str(),
            attempt.error,
            attempt.started_at.as_millis(),
            row::millis(attempt.duration),
            attempt.fuel.map(saturated),
            attempt.peak_memory.map(saturated),
            attempt.digest.map(|digest| digest.0),
        ],
    )?;
    let kept = i64::try_from(AttemptRecord::KEPT).unwrap_or(i64::MAX);
    if attempt.token > kept && db.execute(TRIM, [attempt.job.seq(), kept])? > 0 {
        logs::trim(db, attempt.job)?;
    }
    Ok(())
}

pub(super) fn attempts(db: &Session<'_>, id: &Id) -> Result<Vec<AttemptRecord>> {
    db.all(OF_JOB, [id.as_str()], read)
}

pub(super) fn history(db: &Session<'_>, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>> {
    let Some(job) = find::find(db, id)? else { return Ok(None) };
    Ok(Some((job, attempts(db, id)?)))
}

fn read(row: &Row<'_>) -> Result<AttemptRecord> {
    Ok(AttemptRecord {
        attempt: row::small(row, 0)?,
        outcome: row::word(row, 1, Outcome::parse)?,
        error: row::optional_text(row, 2)?,
        lease: row.get(3)?,
        started_at: row::instant(row, 4)?,
        duration: Duration::from_millis(row::big(row, 5)?),
        fuel: row::optional_big(row, 6)?,
        peak_memory: row::optional_big(row, 7)?,
        digest: row.get::<_, Option<[u8; 32]>>(8)?.map(Digest),
    })
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
