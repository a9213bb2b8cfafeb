//! A worker says that it is alive: its leases hold longer, also those that ran out and that nobody rescued.

use std::time::Duration;

use rusqlite::{Result, params};

use super::session::Session;
use crate::queue::{Lease, Stale};

const RENEW: &str = r#"UPDATE "jobs" SET lease_until = ?3 WHERE seq = ?1 AND lease = ?2 AND status = 'running'"#;

const LOOK: &str =
    r#"SELECT lease = ?2 AND status = 'running', lease = ?2 AND status = 'cancelled' FROM "jobs" WHERE seq = ?1"#;

pub(super) fn renew(db: &Session<'_>, leases: &[Lease], hold: Duration) -> Result<Vec<Stale>> {
    let until = db.now().after(hold).as_millis();
    for lease in leases {
        db.execute(RENEW, params![lease.seq, lease.token, until])?;
    }
    stale(db, leases)
}

/// Those that hold no longer.
pub(super) fn stale(db: &Session<'_>, leases: &[Lease]) -> Result<Vec<Stale>> {
    let mut stale = Vec::new();
    for &lease in leases {
        let found = db.first(LOOK, [lease.seq, lease.token], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (holds, cancelled) = found.unwrap_or((false, false));
        if !holds {
            stale.push(Stale { lease, cancelled });
        }
    }
    Ok(stale)
}
