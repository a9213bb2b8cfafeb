//! Attempts and log lines whose job is gone. The delete trigger removes them with the job, but SQLite does not run it for a
//! row that a foreign program's `INSERT OR REPLACE` replaces.
//!
//! [`find`] scans both tables a step at a time, on a reader; [`delete`] writes.

use rusqlite::{Result, params};

use super::session::Session;
use crate::queue::JobRef;

/// The jobs that a table mentions after `?1`, one seek for each.
macro_rules! jobs_in {
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

const IN_ATTEMPTS: &str = jobs_in!("jobs__attempts");

const IN_LOGS: &str = jobs_in!("jobs__logs");

const DELETE_ATTEMPTS: &str =
    r#"DELETE FROM "jobs__attempts" WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM "jobs" WHERE seq = ?1)"#;

const DELETE_LOGS: &str =
    r#"DELETE FROM "jobs__logs" WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM "jobs" WHERE seq = ?1)"#;

/// Jobs in one step, which takes some milliseconds.
const STEP: usize = 2_000;

/// How far the scan of both tables has come. It starts over at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrphanCursor {
    attempts: i64,
    logs: i64,
}

impl Default for OrphanCursor {
    fn default() -> Self {
        Self { attempts: i64::MIN, logs: i64::MIN }
    }
}

/// Scans one step. Returns the jobs that are gone, and where the next step starts.
pub(super) fn find(db: &Session<'_>, cursor: OrphanCursor) -> Result<(Vec<JobRef>, OrphanCursor)> {
    let mut orphans = Vec::new();
    let attempts = step(db, IN_ATTEMPTS, cursor.attempts, &mut orphans)?;
    let logs = step(db, IN_LOGS, cursor.logs, &mut orphans)?;
    orphans.sort_unstable();
    orphans.dedup();
    Ok((orphans, OrphanCursor { attempts, logs }))
}

pub(super) fn delete(db: &Session<'_>, orphans: &[JobRef]) -> Result<()> {
    for job in orphans {
        db.execute(DELETE_ATTEMPTS, [job.seq()])?;
        db.execute(DELETE_LOGS, [job.seq()])?;
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
