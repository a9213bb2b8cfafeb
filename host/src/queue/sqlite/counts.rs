//! How many jobs stand in each state. Counted in indexes that know the state; the rows are not touched.

use rusqlite::{Result, Row};

use super::row;
use super::session::Session;
use crate::queue::{Counts, Status};

const WAITING: &str = r#"
SELECT 'pending', count(*) FILTER (WHERE status = 'pending') FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed')
UNION ALL
SELECT 'failed', count(*) FILTER (WHERE status = 'failed') FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed')"#;

const RUNNING: &str = r#"
SELECT 'running', count(*) FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running'"#;

const DONE: &str = r#"
SELECT status, count(*) FROM "jobs" INDEXED BY "jobs__done"
WHERE status = 'completed' OR status = 'dead' OR status = 'cancelled'
GROUP BY status"#;

pub(super) fn counts(db: &Session<'_>) -> Result<Counts> {
    let mut counts = Counts::new();
    for sql in [WAITING, RUNNING, DONE] {
        counts.extend(db.all(sql, [], read)?);
    }
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}

fn read(row: &Row<'_>) -> Result<(Status, u64)> {
    Ok((row::status(row, 0)?, row::big(row, 1)?))
}
