//! How a worker ends an attempt: complete, fail, snooze, give back, release.
//!
//! Each is one fenced `UPDATE` (row, token, worker, `running`) and, except for a release, one row in the attempts table.

use std::time::Duration;

use rusqlite::{Result, params};

use super::session::Session;
use super::{attempts, enqueue, row};
use crate::queue::{
    AttemptFailure, AttemptWrite, JobRef, Lease, NewJob, Next, Outcome, Receipt, Timestamp, snooze_delay,
};

const COMPLETE: &str = r#"
UPDATE "jobs"
SET status = 'completed', completed_at = ?3, started_at = ?4, attempts = ?5, result = ?6, error = NULL,
    lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND worker = ?7 AND status = 'running'"#;

const FAIL: &str = r#"
UPDATE "jobs"
SET status = ?3, scheduled_at = coalesce(?4, scheduled_at), deferred = coalesce(?4 > ?10, deferred), completed_at = ?5, started_at = ?6, attempts = ?7,
    error = ?8, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND status = 'running' AND (?9 IS NULL OR worker = ?9)"#;

const SNOOZE: &str = r#"
UPDATE "jobs"
SET status = 'pending', scheduled_at = ?3, deferred = 1, started_at = ?4, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND worker = ?5 AND status = 'running'"#;

const GIVE_BACK: &str = r#"
UPDATE "jobs" SET status = 'pending', started_at = ?3, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND worker = ?4 AND status = 'running'"#;

/// Restores `started_at` to the last attempt that did start.
const RELEASE: &str = r#"
UPDATE "jobs"
SET status = 'pending', lease_until = NULL, worker = NULL,
    started_at = (SELECT started_at FROM "jobs__attempts" WHERE seq = ?1 ORDER BY lease DESC LIMIT 1)
WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

/// running → completed. The job is completed before its follow-ups are added, so that one of them may take its key.
pub(super) fn complete(
    db: &Session<'_>,
    receipt: &Receipt,
    result: &str,
    follow_ups: &[NewJob],
) -> Result<AttemptWrite> {
    let (seq, token, worker) = row::fence(&receipt.lease);
    let started_at = attempts::started_at(db, receipt).as_millis();
    let now = db.now().as_millis();
    let changed = db.execute(COMPLETE, params![seq, token, now, started_at, receipt.attempt, result, worker])?;
    let written = end(db, changed, receipt, Outcome::Completed, None)?;
    if written == AttemptWrite::Done {
        enqueue::enqueue(db, follow_ups)?;
    }
    Ok(written)
}

/// running → failed, or dead.
pub(super) fn fail(db: &Session<'_>, receipt: &Receipt, failure: &AttemptFailure) -> Result<AttemptWrite> {
    let failed = FailedAttempt {
        job: receipt.lease.job,
        token: receipt.lease.token,
        worker: Some(receipt.lease.worker.as_str()),
        attempt: receipt.attempt,
        started_at: attempts::started_at(db, receipt),
        error: &failure.error,
        next: failure.next,
    };
    let changed = fail_job(db, &failed)?;
    end(db, changed, receipt, failure.outcome, Some(&failure.error))
}

/// running → pending, due after `delay`. The attempt does not count.
pub(super) fn snooze(db: &Session<'_>, receipt: &Receipt, delay: Duration) -> Result<AttemptWrite> {
    let (seq, token, worker) = row::fence(&receipt.lease);
    let scheduled_at = db.now().after(snooze_delay(delay)).as_millis();
    let started_at = attempts::started_at(db, receipt).as_millis();
    let changed = db.execute(SNOOZE, params![seq, token, scheduled_at, started_at, worker])?;
    end(db, changed, receipt, Outcome::Snoozed, None)
}

/// running → pending at the same position, for a guest that a shutdown interrupted.
pub(super) fn give_back(db: &Session<'_>, receipt: &Receipt) -> Result<AttemptWrite> {
    let (seq, token, worker) = row::fence(&receipt.lease);
    let started_at = attempts::started_at(db, receipt).as_millis();
    let changed = db.execute(GIVE_BACK, params![seq, token, started_at, worker])?;
    end(db, changed, receipt, Outcome::GivenBack, None)
}

/// running → pending, as if the jobs had not been claimed. For guests that never started.
pub(super) fn release(db: &Session<'_>, leases: &[Lease]) -> Result<()> {
    leases.iter().try_for_each(|lease| db.execute(RELEASE, row::fence(lease)).map(drop))
}

/// Adds the attempt to the attempts table, unless its lease was lost.
fn end(
    db: &Session<'_>,
    changed: usize,
    receipt: &Receipt,
    outcome: Outcome,
    error: Option<&str>,
) -> Result<AttemptWrite> {
    if changed == 0 {
        return Ok(AttemptWrite::LeaseLost);
    }
    attempts::add_receipt(db, receipt, outcome, error)?;
    Ok(AttemptWrite::Done)
}

/// A failed attempt, as it changes the row of its job.
pub(super) struct FailedAttempt<'a> {
    pub(super) job: JobRef,
    pub(super) token: i64,
    /// The worker that holds the lease; `None` when another daemon ends a lost attempt.
    pub(super) worker: Option<&'a str>,
    pub(super) attempt: u32,
    pub(super) started_at: Timestamp,
    pub(super) error: &'a str,
    pub(super) next: Next,
}

/// running → failed, or dead. Returns how many rows changed. The caller writes the attempt.
pub(super) fn fail_job(db: &Session<'_>, failed: &FailedAttempt<'_>) -> Result<usize> {
    let status = failed.next.status();
    let completed_at = status.is_terminal().then_some(db.now());
    db.execute(
        FAIL,
        params![
            failed.job.seq(),
            failed.token,
            status.as_str(),
            failed.next.due(db.now()).map(Timestamp::as_millis),
            completed_at.map(Timestamp::as_millis),
            failed.started_at.as_millis(),
            failed.attempt,
            failed.error,
            failed.worker,
            db.now().as_millis(),
        ],
    )
}
