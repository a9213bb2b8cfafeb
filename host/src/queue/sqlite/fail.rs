//! An attempt failed: running → failed, or dead.

use rusqlite::{Result, params};

use super::ledger;
use super::session::Session;
use crate::queue::{AttemptFailure, JobRef, Next, Receipt, Recorded, Timestamp};

const FAIL: &str = r#"
UPDATE "jobs"
SET status = ?3, scheduled_at = coalesce(?4, scheduled_at), deferred = coalesce(?4 > ?10, deferred), completed_at = ?5, started_at = ?6, attempts = ?7,
    error = ?8, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND status = 'running' AND (?9 IS NULL OR worker = ?9)"#;

pub(super) fn fail(db: &Session<'_>, receipt: &Receipt, failure: &AttemptFailure) -> Result<Recorded> {
    let started_at = ledger::started_at(db, receipt);
    let recorded = settle(db, &Settled::of(receipt, failure, started_at))?;
    if recorded == Recorded::Yes {
        ledger::close(db, receipt, failure.outcome, Some(&failure.error))?;
    }
    Ok(recorded)
}

/// How a failed attempt leaves its job.
pub(super) struct Settled<'a> {
    pub(super) job: JobRef,
    pub(super) token: i64,
    /// Who ends it: the worker that holds the lease, or `None` for whoever found it lost.
    pub(super) worker: Option<&'a str>,
    pub(super) attempt: u32,
    pub(super) started_at: Timestamp,
    pub(super) error: &'a str,
    pub(super) next: Next,
}

impl<'a> Settled<'a> {
    fn of(receipt: &'a Receipt, failure: &'a AttemptFailure, started_at: Timestamp) -> Self {
        let (job, token, worker) = (receipt.lease.job, receipt.lease.token, Some(receipt.lease.worker.as_str()));
        Self { job, token, worker, attempt: receipt.attempt, started_at, error: &failure.error, next: failure.next }
    }
}

/// Moves the job; the ledger is the caller's.
pub(super) fn settle(db: &Session<'_>, settled: &Settled<'_>) -> Result<Recorded> {
    let status = settled.next.status();
    let completed_at = status.is_terminal().then_some(db.now());
    let changed = db.execute(
        FAIL,
        params![
            settled.job.seq(),
            settled.token,
            status.as_str(),
            settled.next.due(db.now()).map(Timestamp::as_millis),
            completed_at.map(Timestamp::as_millis),
            settled.started_at.as_millis(),
            settled.attempt,
            settled.error,
            settled.worker,
            db.now().as_millis(),
        ],
    )?;
    Ok(if changed == 0 { Recorded::LeaseLost } else { Recorded::Yes })
}
