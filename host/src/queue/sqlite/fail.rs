//! An attempt failed: running → failed, or dead.

use std::time::Duration;

use rusqlite::{Result, params};

use super::ledger;
use super::session::Session;
use crate::queue::{Failure, Lease, Next, Receipt, Recorded, Status, Timestamp};

const FAIL: &str = r#"
UPDATE "jobs"
SET status = ?3, scheduled_at = coalesce(?4, scheduled_at), completed_at = ?5, started_at = ?6, attempts = ?7,
    error = ?8, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND status = 'running'"#;

/// Nobody waits longer, whoever asks for it.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(366 * 86_400);

pub(super) fn fail(db: &Session<'_>, receipt: &Receipt, failure: &Failure) -> Result<Recorded> {
    let started_at = ledger::started_at(db, receipt);
    let recorded = settle(db, receipt.lease, receipt.attempt, started_at, &failure.error, failure.next)?;
    if recorded == Recorded::Yes {
        ledger::close(db, receipt, failure.outcome, Some(&failure.error))?;
    }
    Ok(recorded)
}

/// Moves the job; the ledger is the caller's.
pub(super) fn settle(
    db: &Session<'_>,
    lease: Lease,
    attempt: u32,
    started_at: Timestamp,
    error: &str,
    next: Next,
) -> Result<Recorded> {
    let (status, scheduled_at, completed_at) = match next {
        Next::Retry(delay) => (Status::Failed, Some(db.now().after(delay.min(LONGEST_DELAY))), None),
        Next::Dead => (Status::Dead, None, Some(db.now())),
    };
    let changed = db.execute(
        FAIL,
        params![
            lease.seq,
            lease.token,
            status.as_str(),
            scheduled_at.map(Timestamp::as_millis),
            completed_at.map(Timestamp::as_millis),
            started_at.as_millis(),
            attempt,
            error,
        ],
    )?;
    Ok(if changed == 0 { Recorded::LeaseLost } else { Recorded::Yes })
}
