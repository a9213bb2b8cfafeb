//! A handler asked to be called again later: running → pending, and the attempt does not count.

use std::time::Duration;

use rusqlite::{Result, params};

use super::session::Session;
use super::{ledger, row};
use crate::queue::{Outcome, Receipt, Recorded, snooze_delay};

const SNOOZE: &str = r#"
UPDATE "jobs"
SET status = 'pending', scheduled_at = ?3, deferred = 1, started_at = ?4, lease_until = NULL
WHERE seq = ?1 AND lease = ?2 AND worker = ?5 AND status = 'running'"#;

pub(super) fn snooze(db: &Session<'_>, receipt: &Receipt, delay: Duration) -> Result<Recorded> {
    let (seq, token, worker) = row::fence(&receipt.lease);
    let scheduled_at = db.now().after(snooze_delay(delay)).as_millis();
    let started_at = ledger::started_at(db, receipt).as_millis();
    if db.execute(SNOOZE, params![seq, token, scheduled_at, started_at, worker])? == 0 {
        return Ok(Recorded::LeaseLost);
    }
    ledger::close(db, receipt, Outcome::Snoozed, None)?;
    Ok(Recorded::Yes)
}
