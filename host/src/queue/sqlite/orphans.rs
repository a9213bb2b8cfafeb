//! What jobs have left that somebody deleted without the trigger: SQLite runs none for a row that an `INSERT OR REPLACE` of a
//! foreign program replaces.
//!
//! [`look`] goes through the ledger and the logs a step at a time, on a reader; [`delete`] writes.

use rusqlite::{Result, params};

use super::session::Session;
use crate::queue::JobRef;

/// The jobs that a table knows after a place, each found by a seek.
macro_rules! known_to {
    ($table:literal) => {
        concat!(
            r#"WITH RECURSIVE known(seq) AS (SELECT (SELECT min(seq) FROM ""#,
            $table,
            r#"" WHERE seq > ?1) UNION ALL SELECT (SELECT min(seq) FROM ""#,
            $table,
            r#"" WHERE seq > known.seq) FROM known WHERE known.seq IS NOT NULL LIMIT ?2)
SELECT seq, EXISTS (SELECT 1 FROM "jobs" WHERE "jobs".seq = known.seq) FROM known WHERE seq IS NOT NULL"#
        )
    };
}

const IN_LEDGER: &str = known_to!("jobs__attempts");

const IN_LOGS: &str = known_to!("jobs__logs");

const FORGET_ATTEMPTS: &str =
    r#"DELETE FROM "jobs__attempts" WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM "jobs" WHERE seq = ?1)"#;

const FORGET_LOGS: &str =
    r#"DELETE FROM "jobs__logs" WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM "jobs" WHERE seq = ?1)"#;

/// Jobs that are looked at in one step, some milliseconds.
const STEP: usize = 2_000;

/// How far the ledger and the logs have been gone through; from the start again when they are through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    ledger: i64,
    logs: i64,
}

impl Default for Walk {
    fn default() -> Self {
        Self { ledger: i64::MIN, logs: i64::MIN }
    }
}

/// Looks one step further, and tells who left something and is no longer there.
pub(super) fn look(db: &Session<'_>, walk: Walk) -> Result<(Vec<JobRef>, Walk)> {
    let mut orphans = Vec::new();
    let ledger = step(db, IN_LEDGER, walk.ledger, &mut orphans)?;
    let logs = step(db, IN_LOGS, walk.logs, &mut orphans)?;
    orphans.sort_unstable();
    orphans.dedup();
    Ok((orphans, Walk { ledger, logs }))
}

pub(super) fn delete(db: &Session<'_>, orphans: &[JobRef]) -> Result<()> {
    for job in orphans {
        db.execute(FORGET_ATTEMPTS, [job.seq()])?;
        db.execute(FORGET_LOGS, [job.seq()])?;
    }
    Ok(())
}

fn step(db: &Session<'_>, sql: &'static str, after: i64, orphans: &mut Vec<JobRef>) -> Result<i64> {
    let known: Vec<(i64, bool)> =
        db.all(sql, params![after, i64::try_from(STEP).unwrap_or(i64::MAX)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    orphans.extend(known.iter().filter(|(_, exists)| !exists).map(|(seq, _)| JobRef::from_seq(*seq)));
    let last = known.last().filter(|_| known.len() == STEP);
    Ok(last.map_or(i64::MIN, |(seq, _)| *seq))
}
