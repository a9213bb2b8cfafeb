//! Checks that each job of a type was done exactly once, by comparing its row with its attempts.

use rusqlite::Result;

use super::row;
use super::session::Session;
use crate::queue::JobType;

/// A job was done once if its row counts one attempt and the attempts table has one row for it, `completed`.
const AUDIT: &str = r#"
SELECT count(*),
       count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE status = 'completed' AND attempts = 1 AND 'completed' = (
         SELECT group_concat(outcome) FROM "jobs__attempts" AS attempt WHERE attempt.seq = job.seq))
FROM "jobs" AS job WHERE type = ?1"#;

/// Counts of the jobs of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// All jobs.
    pub jobs: u64,
    /// Completed jobs.
    pub completed: u64,
    /// Completed jobs that took one attempt, by their row and by the attempts table.
    pub once: u64,
}

pub(super) fn audit(db: &Session<'_>, job_type: &JobType) -> Result<Audit> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Audit { jobs: row::big(row, 0)?, completed: row::big(row, 1)?, once: row::big(row, 2)? })
    };
    Ok(db.first(AUDIT, [job_type.as_str()], read)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::open;
    use super::super::options::{OpenMode, QueueOptions};
    use super::super::table_name::TableName;
    use super::*;

    #[test]
    fn the_row_and_the_attempts_must_agree_on_one_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let connection = open::writer(&QueueOptions::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
        let jobs = "INSERT INTO jobs (type, status, attempts, completed_at) VALUES ('t', 'completed', ?1, 1), ('u', 'pending', 0, NULL)";
        let entries = "INSERT INTO jobs__attempts (seq, lease, attempt, outcome, started_at, duration_ms)
                       SELECT 1, key, 1, value, 1, 0 FROM json_each(?1)";
        for (attempts, rows, once) in [
            (1, r#"["completed"]"#, 1),
            (2, r#"["completed"]"#, 0),
            (1, r#"["completed", "completed"]"#, 0),
            (1, r#"["lost", "completed"]"#, 0),
            (1, r#"["failed"]"#, 0),
            (1, "[]", 0),
        ] {
            connection.execute_batch("DELETE FROM jobs; DELETE FROM sqlite_sequence").unwrap();
            connection.execute(jobs, [attempts]).unwrap();
            connection.execute(entries, [rows]).unwrap();
            let table = TableName::default();
            let found = audit(&Session::new(&connection, &table), &JobType::parse("t").unwrap()).unwrap();
            assert_eq!(found, Audit { jobs: 1, completed: 1, once }, "{attempts} {rows}");
        }
    }
}
