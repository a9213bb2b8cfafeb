//! How many jobs stand in each state. Counted in indexes that know the state; the rows are not touched.

use std::time::Duration;

use rusqlite::Result;

use super::row;
use super::session::Session;
use crate::queue::{Counts, Status};

/// Those of one of the two indexes that a waiting job can stand in.
macro_rules! waiting {
    ($index:literal, $deferred:literal) => {
        concat!(
            "SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'failed')",
            r#" FROM "jobs" INDEXED BY "jobs__"#,
            $index,
            r#"" WHERE status IN ('pending', 'failed') AND deferred = "#,
            $deferred
        )
    };
}

const WAITING: [&str; 2] = [waiting!("claim", "0"), waiting!("deferred", "1")];

const RUNNING: &str = r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running'"#;

const HAS_RUNNING: &str = r#"SELECT EXISTS (SELECT 1 FROM "jobs" INDEXED BY "jobs__lease" WHERE status = 'running')"#;

const DONE: &str = r#"
SELECT status, count(*) FROM "jobs" INDEXED BY "jobs__done"
WHERE status = 'completed' OR status = 'dead' OR status = 'cancelled'
GROUP BY status"#;

/// Those that come due between two instants, of one of the two indexes that a waiting job can stand in.
macro_rules! due {
    ($index:literal, $deferred:literal) => {
        concat!(
            r#"SELECT count(*) FROM "jobs" INDEXED BY "jobs__"#,
            $index,
            r#"" WHERE status IN ('pending', 'failed') AND deferred = "#,
            $deferred,
            " AND scheduled_at > ?1 AND scheduled_at <= ?2"
        )
    };
}

const DUE: [&str; 2] = [due!("claim", "0"), due!("deferred", "1")];

pub(super) fn due_within(db: &Session<'_>, within: Duration) -> Result<u64> {
    let between = [db.now().as_millis(), db.now().after(within).as_millis()];
    DUE.iter().try_fold(0, |sum, due| Ok(sum + db.first(due, between, |row| row::big(row, 0))?.unwrap_or_default()))
}

pub(super) fn has_running(db: &Session<'_>) -> Result<bool> {
    Ok(db.first(HAS_RUNNING, [], |row| row.get(0))?.unwrap_or(false))
}

pub(super) fn counts(db: &Session<'_>) -> Result<Counts> {
    let done = db.all(DONE, [], |row| Ok((row::status(row, 0)?, row::big(row, 1)?)))?;
    let (mut pending, mut failed) = (0, 0);
    for waiting in WAITING {
        let counted = db.first(waiting, [], |row| Ok((row::big(row, 0)?, row::big(row, 1)?)))?;
        let (more_pending, more_failed) = counted.unwrap_or_default();
        (pending, failed) = (pending + more_pending, failed + more_failed);
    }
    let running = db.first(RUNNING, [], |row| row::big(row, 0))?.unwrap_or_default();
    let mut counts: Counts = done.into_iter().collect();
    counts.extend([(Status::Pending, pending), (Status::Failed, failed), (Status::Running, running)]);
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}
