//! Somebody wants a job run again: failed, dead, cancelled → pending.

use rusqlite::{Result, params};

use super::session::Session;
use super::{enqueue, row};
use crate::queue::store::limit_for_retry;
use crate::queue::{Event, Id, Policies, Retried};

const FIND: &str = r#"SELECT seq, status, type, attempts, max_attempts, unique_key FROM "jobs" WHERE id = ?1"#;

const RETRY: &str = r#"
UPDATE "jobs" SET status = 'pending', scheduled_at = ?2, max_attempts = ?3, completed_at = NULL WHERE seq = ?1"#;

pub(super) fn retry(db: &Session<'_>, id: &Id, policies: &Policies) -> Result<Retried> {
    let found = db.first(FIND, [id.as_str()], |row| {
        let limits = (row::small(row, 3)?, row::optional_small(row, 4)?);
        let key: Option<String> = row::optional_text(row, 5)?;
        Ok((row.get::<_, i64>(0)?, row::status(row, 1)?, row::text(row, 2)?, limits, key))
    })?;
    let Some((seq, status, job_type, (attempts, own_limit), key)) = found else { return Ok(Retried::NotFound) };
    if status.after(Event::Retry).is_none() {
        return Ok(Retried::Forbidden(status));
    }
    if let Some(key) = key.filter(|_| status.is_terminal())
        && let Some(holder) = enqueue::holder(db, &key)?
    {
        return Ok(Retried::KeyTaken(holder));
    }
    let limit = limit_for_retry(attempts, own_limit, policies.of(&job_type));
    db.execute(RETRY, params![seq, db.now().as_millis(), limit])?;
    Ok(Retried::From(status))
}
