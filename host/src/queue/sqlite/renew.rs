//! A worker says that it is alive: its leases hold longer, also those that ran out and that nobody rescued.

use std::time::Duration;

use rusqlite::{Result, params};

use super::row;
use super::session::Session;
use crate::queue::{Lease, StaleLease, Status};

const RENEW: &str = r#"
UPDATE "jobs" SET lease_until = ?4 WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

const LOOK: &str = r#"SELECT status FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND worker = ?3"#;

pub(super) fn renew(db: &Session<'_>, leases: &[Lease], hold: Duration) -> Result<Vec<StaleLease>> {
    let until = db.now().after(hold).as_millis();
    for lease in leases {
        let (seq, token, worker) = row::fence(lease);
        db.execute(RENEW, params![seq, token, worker, until])?;
    }
    stale(db, leases)
}

/// Those that hold no longer.
pub(super) fn stale(db: &Session<'_>, leases: &[Lease]) -> Result<Vec<StaleLease>> {
    let mut stale = Vec::new();
    for lease in leases {
        let status = db.first(LOOK, row::fence(lease), |row| row::status(row, 0))?;
        if status != Some(Status::Running) {
            stale.push(StaleLease { lease: lease.clone(), cancelled: status == Some(Status::Cancelled) });
        }
    }
    Ok(stale)
}
