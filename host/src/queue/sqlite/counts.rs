//! How many jobs stand in each state. Counted in indexes that know the state; the rows are not touched.

use rusqlite::Result;

use super::row;
use super::session::Session;
use crate::queue::{Counts, Status};

const WAITING: &str = r#"
SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'failed')
FROM "jobs" INDEXED BY "jobs__claim" WHERE status IN ('pending', 'failed')"#;

const RUNNING: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running'"#;

const DONE: &str = r#"
SELECT status, count(*) FROM "jobs" INDEXED BY "jobs__done"
WHERE status = 'completed' OR status = 'dead' OR status = 'cancelled'
GROUP BY status"#;

pub(super) fn counts(db: &Session<'_>) -> Result<Counts> {
    let done = db.all(DONE, [], |row| Ok((row::status(row, 0)?, row::big(row, 1)?)))?;
    let waiting = db.first(WAITING, [], |row| Ok((row::big(row, 0)?, row::big(row, 1)?)))?;
    let (pending, failed) = waiting.unwrap_or_default();
    let running = db.first(RUNNING, [], |row| row::big(row, 0))?.unwrap_or_default();
    let mut counts: Counts = done.into_iter().collect();
    counts.extend([(Status::Pending, pending), (Status::Failed, failed), (Status::Running, running)]);
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}
