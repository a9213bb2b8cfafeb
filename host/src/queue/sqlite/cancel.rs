//! Somebody stops a job: pending, failed, running → cancelled.

use rusqlite::{Result, params};

use super::ledger::{self, Entry};
use super::row;
use super::session::Session;
use crate::queue::{Cancelled, Event, Id, Lease, Outcome, Status};

const FIND: &str = r#"SELECT seq, lease, status, attempts, started_at FROM "jobs" WHERE id = ?1"#;

const CANCEL: &str = r#"UPDATE "jobs" SET status = 'cancelled', completed_at = ?2, lease_until = NULL WHERE seq = ?1"#;

/// A running attempt ends here: its worker finds the lease stale and has nothing more to write.
pub(super) fn cancel(db: &Session<'_>, id: &Id) -> Result<Cancelled> {
    let found = db.first(FIND, [id.as_str()], |row| {
        let lease = Lease { seq: row.get(0)?, token: row.get(1)? };
        Ok((lease, row::status(row, 2)?, row::small(row, 3)?, row::optional_instant(row, 4)?))
    })?;
    let Some((lease, status, attempts, started_at)) = found else { return Ok(Cancelled::NotFound) };
    if status.after(Event::Cancel).is_none() {
        return Ok(Cancelled::Forbidden(status));
    }
    let now = db.now();
    db.execute(CANCEL, params![lease.seq, now.as_millis()])?;
    if status == Status::Running {
        let started_at = started_at.unwrap_or(now);
        let entry = Entry::without_receipt(lease, attempts, Outcome::Cancelled, started_at, now);
        ledger::add(db, &entry)?;
    }
    Ok(Cancelled::From(status))
}
