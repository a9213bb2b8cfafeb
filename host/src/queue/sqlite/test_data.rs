//! Fills a queue with rows that stand in a job's way, or should not: what the benches measure it beside.

use rusqlite::params;
use thiserror::Error;

use super::session::Session;
use super::{OpenError, OpenMode, QueueOptions, open};
use crate::queue::{JobType, StoreError};

/// Rows of one transaction: more of them would only grow the log.
const STEP: i64 = 100_000;

/// The type of jobs that nobody serves.
const UNSERVED: &str = "not-served";

/// Milliseconds.
const YEAR: i64 = 365 * 86_400_000;

/// Rows that should not matter have so many priorities, from 0 on: each is one more place where a claim could meet them.
const PRIORITIES: i64 = 10;

/// As many as a priority can be, from 0 to the highest.
const ALL_PRIORITIES: i64 = i16::MAX as i64 + 1;

/// What kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillerRows {
    /// Completed in one attempt, as their ledger says.
    Finished,
    /// Due in a year.
    Future,
    /// Due in a year, with each priority from 0 on.
    FuturePriorities,
    /// Due, of a type that nobody serves.
    Unserved,
    /// Due, all with priority 0.
    Waiting,
}

/// The numbers ?1 to ?2 - 1.
macro_rules! numbered {
    ($sql:literal) => {
        concat!("WITH RECURSIVE numbers(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2) ", $sql)
    };
}

const FINISHED: &str = numbered!(
    r#"INSERT INTO "jobs" (seq, type, status, priority, attempts, lease, started_at, completed_at, result)
    SELECT n, ?3, 'completed', n % 10, 1, 1, ?4, ?4, '' FROM numbers"#
);

const LEDGER: &str = numbered!(
    r#"INSERT INTO "jobs__attempts" (seq, lease, attempt, outcome, started_at, duration_ms)
    SELECT n, 1, 1, 'completed', ?3, 0 FROM numbers"#
);

const PENDING: &str = numbered!(
    r#"INSERT INTO "jobs" (seq, type, status, priority, scheduled_at)
    SELECT n, ?3, 'pending', n % ?5, ?4 FROM numbers"#
);

/// Why a queue cannot be filled.
#[derive(Debug, Error)]
pub enum FillError {
    /// It cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The rows cannot be written; some of them may be there.
    #[error("cannot fill the queue with rows: {0}")]
    Write(StoreError),
}

/// Makes the queue and fills it with `rows` jobs of `job_type`, as a foreign program would. Blocks.
///
/// # Errors
/// When the queue cannot be made, already has jobs, or the disk is full.
pub fn fill(options: &QueueOptions, kind: FillerRows, job_type: &JobType, rows: u32) -> Result<(), FillError> {
    let connection = open::writer(options, OpenMode::Create)?;
    let session = Session::new(&connection, &options.table);
    insert(&session, kind, job_type.as_str(), i64::from(rows)).map_err(|error| FillError::Write(error.into()))
}

fn insert(session: &Session<'_>, kind: FillerRows, name: &str, rows: i64) -> rusqlite::Result<()> {
    let now = session.now().as_millis();
    let mut from = 1;
    while from <= rows {
        let to = (from + STEP).min(rows + 1);
        session.execute("BEGIN IMMEDIATE", [])?;
        match kind {
            FillerRows::Finished => {
                session.execute(FINISHED, params![from, to, name, now])?;
                session.execute(LEDGER, params![from, to, now])?
            }
            FillerRows::Future => session.execute(PENDING, params![from, to, name, now + YEAR, PRIORITIES])?,
            FillerRows::FuturePriorities => {
                session.execute(PENDING, params![from, to, name, now + YEAR, ALL_PRIORITIES])?
            }
            FillerRows::Unserved => session.execute(PENDING, params![from, to, UNSERVED, now, PRIORITIES])?,
            FillerRows::Waiting => session.execute(PENDING, params![from, to, name, now, 1])?,
        };
        session.execute("COMMIT", [])?;
        from = to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_writes_as_many_rows_as_were_asked_for() {
        let rows = 100_007;
        for (kind, status) in
            [(FillerRows::Finished, "completed"), (FillerRows::Waiting, "pending"), (FillerRows::Future, "pending")]
        {
            let dir = tempfile::tempdir().unwrap();
            let options = QueueOptions::new(dir.path().join("queue.db"));
            fill(&options, kind, &JobType::parse("t").unwrap(), rows).unwrap();
            let connection = rusqlite::Connection::open(&options.database).unwrap();
            let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
            assert_eq!(count(&format!("SELECT count(*) FROM jobs WHERE status = '{status}' AND type = 't'")), rows);
            let ledger = if kind == FillerRows::Finished { rows } else { 0 };
            assert_eq!(count("SELECT count(*) FROM jobs__attempts"), ledger);
        }
    }
}
