//! Cancel: pending, failed, running → cancelled.

use rusqlite::{Result, Row, params};

use super::attempts::{self, NewAttempt};
use super::row;
use super::session::Session;
use crate::queue::{BulkResult, Cancelled, Event, Id, JobRef, Outcome, Status, Timestamp};

const FIND: &str = r#"SELECT seq, lease, status, attempts, started_at FROM "jobs" WHERE id = ?1"#;

const FIND_BY_SEQ: &str = r#"SELECT seq, lease, status, attempts, started_at FROM "jobs" WHERE seq = ?1"#;

const CANCEL: &str = r#"UPDATE "jobs" SET status = 'cancelled', completed_at = ?2, lease_until = NULL WHERE seq = ?1"#;

pub(super) fn cancel(db: &Session<'_>, id: &Id) -> Result<Cancelled> {
    match db.first(FIND, [id.as_str()], Found::read)? {
        Some(found) => found.cancel(db),
        None => Ok(Cancelled::NotFound),
    }
}

pub(super) fn cancel_many(db: &Session<'_>, jobs: &[JobRef], from: &[Status]) -> Result<BulkResult> {
    let mut answer = BulkResult::default();
    for job in jobs {
        let found = db.first(FIND_BY_SEQ, [job.seq()], Found::read)?.filter(|found| from.contains(&found.status));
        match found.map(|found| found.cancel(db)).transpose()? {
            Some(Cancelled::From(_)) => answer.moved += 1,
            Some(Cancelled::Forbidden(_) | Cancelled::NotFound) | None => answer.gone += 1,
        }
    }
    Ok(answer)
}

/// The columns that decide whether a job can be cancelled.
struct Found {
    job: JobRef,
    token: i64,
    status: Status,
    attempts: u32,
    started_at: Option<Timestamp>,
}

impl Found {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            job: row::reference(row, 0)?,
            token: row.get(1)?,
            status: row::status(row, 2)?,
            attempts: row::small(row, 3)?,
            started_at: row::optional_instant(row, 4)?,
        })
    }

    /// Ends a running attempt too. Its worker then finds the lease stale.
    fn cancel(self, db: &Session<'_>) -> Result<Cancelled> {
        if self.status.after(Event::Cancel).is_none() {
            return Ok(Cancelled::Forbidden(self.status));
        }
        let now = db.now();
        db.execute(CANCEL, params![self.job.seq(), now.as_millis()])?;
        if self.status == Status::Running {
            let started_at = self.started_at.unwrap_or(now);
            let (job, token) = (self.job, self.token);
            let attempt = NewAttempt::without_receipt(job, token, self.attempts, Outcome::Cancelled, started_at, now);
            attempts::add(db, &attempt)?;
        }
        Ok(Cancelled::From(self.status))
    }
}
