//! How many jobs stand in each state.

use rusqlite::Result;

use super::row;
use super::session::Session;
use crate::queue::Counts;

const BY_STATUS: &str = r#"SELECT status, count(*) FROM "jobs" GROUP BY status"#;

pub(super) fn counts(db: &Session<'_>) -> Result<Counts> {
    Ok(db.all(BY_STATUS, [], |row| Ok((row::status(row, 0)?, row::big(row, 1)?)))?.into_iter().collect())
}
