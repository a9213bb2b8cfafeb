//! A handler returned a result: running → completed.

use rusqlite::{Result, params};

use super::session::Session;
use super::{enqueue, ledger, row};
use crate::queue::{NewJob, Outcome, Receipt, Recorded};

const COMPLETE: &str = r#"
UPDATE "jobs"
SET status = 'completed', completed_at = ?3, started_at = ?4, attempts = ?5, result = ?6, error = NULL,
    lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND worker = ?7 AND status = 'running'"#;

/// The job is done before its follow-ups are added, so that one of them may take over its key.
pub(super) fn complete(db: &Session<'_>, receipt: &Receipt, result: &str, follow_ups: &[NewJob]) -> Result<Recorded> {
    let (seq, token, worker) = row::fence(&receipt.lease);
    let started_at = ledger::started_at(db, receipt).as_millis();
    let now = db.now().as_millis();
    if db.execute(COMPLETE, params![seq, token, now, started_at, receipt.attempt, result, worker])? == 0 {
        return Ok(Recorded::LeaseLost);
    }
    ledger::close(db, receipt, Outcome::Completed, None)?;
    enqueue::enqueue(db, follow_ups)?;
    Ok(Recorded::Yes)
}
