//! Fills a queue with rows for the benchmarks to measure beside.

use rusqlite::params;
use thiserror::Error;

use super::open;
use super::open_error::OpenError;
use super::options::{OpenMode, QueueOptions};
use super::session::Session;
use crate::queue::{JobType, StoreError};

/// Rows in one transaction. More would only make the log larger.
const STEP: i64 = 100_000;

/// A type that no daemon serves.
const UNSERVED: &str = "not-served";

/// Milliseconds.
const YEAR: i64 = 365 * 86_400_000;

/// Number of priorities among rows that should not matter: a claim could meet such rows once for each priority.
const PRIORITIES: i64 = 10;

/// Every priority from 0 to the highest.
const ALL_PRIORITIES: i64 = i16::MAX as i64 + 1;

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillerRows {
    /// Completed in one attempt.
    Finished,
    /// Due in a year.
    Future,
    /// Due in a year, with every priority from 0 up.
    FuturePriorities,
    /// Due, of a type that no daemon serves.
    Unserved,
    /// Due, all with priority 0.
    Waiting,
}

/// For each number from ?1 to ?2 - 1.
macro_rules! numbered {
    ($sql:literal) => {
        concat!("WITH RECURSIVE numbers(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2) ", $sql)
    };
}

const FINISHED: &str = numbered!(
    r#"INSERT INTO "jobs" (seq, type, status, priority, attempts, lease, started_at, completed_at, result)
    SELECT n, ?3, 'completed', n % 10, 1, 1, ?4, ?4, '' FROM numbers"#
);

const ATTEMPTS: &str = numbered!(
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
    /// It cannot be opened or created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The rows cannot be written. Some of them may have been.
    #[error("cannot fill the queue with rows: {0}")]
    Write(StoreError),
}

/// Creates the queue and fills it with `rows` jobs of `job_type`, as a foreign program would. Blocks.
///
/// # Errors
/// When the queue cannot be created, already has jobs, or the disk is full.
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
                session.execute(ATTEMPTS, params![from, to, now])?
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
    fn fill_writes_the_given_number_of_rows() {
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
            let attempts = if kind == FillerRows::Finished { rows } else { 0 };
            assert_eq!(count("SELECT count(*) FROM jobs__attempts"), attempts);
        }
    }
}
