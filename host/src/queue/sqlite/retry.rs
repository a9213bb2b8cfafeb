//! Retry by hand: failed, dead, cancelled → pending.

use rusqlite::{Result, Row, params};

use super::session::Session;
use super::{enqueue, row};
use crate::queue::{BulkResult, Event, Id, JobRef, Retried, RetryPolicies, Status};

const FIND: &str = r#"SELECT seq, status, type, attempts, max_attempts, unique_key FROM "jobs" WHERE id = ?1"#;

const FIND_BY_SEQ: &str = r#"SELECT seq, status, type, attempts, max_attempts, unique_key FROM "jobs" WHERE seq = ?1"#;

const RETRY: &str = r#"
UPDATE "jobs" SET status = 'pending', scheduled_at = ?2, deferred = 0, max_attempts = ?3, completed_at = NULL WHERE seq = ?1"#;

pub(super) fn retry(db: &Session<'_>, id: &Id, policies: &RetryPolicies) -> Result<Retried> {
    match db.first(FIND, [id.as_str()], Found::read)? {
        Some(found) => found.retry(db, policies),
        None => Ok(Retried::NotFound),
    }
}

pub(super) fn retry_many(
    db: &Session<'_>,
    jobs: &[JobRef],
    from: &[Status],
    policies: &RetryPolicies,
) -> Result<BulkResult> {
    let mut answer = BulkResult::default();
    for job in jobs {
        let found = db.first(FIND_BY_SEQ, [job.seq()], Found::read)?.filter(|found| from.contains(&found.status));
        match found.map(|found| found.retry(db, policies)).transpose()? {
            Some(Retried::From(_)) => answer.moved += 1,
            Some(Retried::KeyTaken(_)) => answer.key_taken += 1,
            Some(Retried::Forbidden(_) | Retried::NotFound) | None => answer.gone += 1,
        }
    }
    Ok(answer)
}

/// The columns that decide whether a job can run again.
struct Found {
    seq: i64,
    status: Status,
    job_type: String,
    attempts: u32,
    own_limit: Option<u32>,
    key: Option<String>,
}

impl Found {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            status: row::status(row, 1)?,
            job_type: row::text(row, 2)?,
            attempts: row::small(row, 3)?,
            own_limit: row::optional_small(row, 4)?,
            key: row::optional_text(row, 5)?,
        })
    }

    fn retry(self, db: &Session<'_>, policies: &RetryPolicies) -> Result<Retried> {
        if self.status.after(Event::Retry).is_none() {
            return Ok(Retried::Forbidden(self.status));
        }
        if let Some(key) = self.key.filter(|_| self.status.is_terminal())
            && let Some(holder) = enqueue::holder(db, &key)?
        {
            return Ok(Retried::KeyTaken(holder));
        }
        let limit = policies.of(&self.job_type).limit_for_retry(self.attempts, self.own_limit);
        db.execute(RETRY, params![self.seq, db.now().as_millis(), limit])?;
        Ok(Retried::From(self.status))
    }
}
