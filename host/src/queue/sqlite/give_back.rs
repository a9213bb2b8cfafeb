//! A worker that stops hands back a job whose guest had started: running → pending, at the same place in the queue.

use rusqlite::{Result, params};

use super::session::Session;
use super::{ledger, row};
use crate::queue::{Outcome, Receipt, Recorded};

const GIVE_BACK: &str = r#"
UPDATE "jobs" SET status = 'pending', started_at = ?3, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND worker = ?4 AND status = 'running'"#;

pub(super) fn give_back(db: &Session<'_>, receipt: &Receipt) -> Result<Recorded> {
    let (seq, token, worker) = row::fence(&receipt.lease);
    let started_at = ledger::started_at(db, receipt).as_millis();
    if db.execute(GIVE_BACK, params![seq, token, started_at, worker])? == 0 {
        return Ok(Recorded::LeaseLost);
    }
    ledger::close(db, receipt, Outcome::GivenBack, None)?;
    Ok(Recorded::Yes)
}
