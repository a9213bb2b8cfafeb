//! How many jobs stand in each state. Each is counted in its index, which holds nothing else; the rows are not touched.

use rusqlite::Result;

use super::row;
use super::session::Session;
use crate::queue::{Counts, Status};

const WAITING: &str = r#"
SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'failed')
FROM "jobs" INDEXED BY "jobs__claim" WHERE status IN ('pending', 'failed')"#;

const RUNNING: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running'"#;

const COMPLETED: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__completed" WHERE status = 'completed'"#;

const DEAD: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__dead" WHERE status = 'dead'"#;

const CANCELLED: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__cancelled" WHERE status = 'cancelled'"#;

pub(super) fn counts(db: &Session<'_>) -> Result<Counts> {
    let waiting = db.first(WAITING, [], |row| Ok((row::big(row, 0)?, row::big(row, 1)?)))?;
    let (pending, failed) = waiting.unwrap_or_default();
    let count = |sql| db.first(sql, [], |row| row::big(row, 0)).map(Option::unwrap_or_default);
    let counts = [
        (Status::Pending, pending),
        (Status::Running, count(RUNNING)?),
        (Status::Completed, count(COMPLETED)?),
        (Status::Failed, failed),
        (Status::Dead, count(DEAD)?),
        (Status::Cancelled, count(CANCELLED)?),
    ];
    Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
}
