//! The output of attempts: log lines, standard output, standard error.

use rusqlite::{Result, Row, params};

use super::row;
use super::session::Session;
use crate::queue::{Id, JobRef, Lease, LogLine, LogSource};

const NEXT_LINE: &str = r#"SELECT coalesce(max(line) + 1, 0) FROM "jobs__logs" WHERE seq = ?1"#;

const INSERT: &str = r#"
INSERT INTO "jobs__logs" (seq, line, lease, attempt, time, source, level, message)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"#;

/// Lines are in the order of their leases, so the oldest attempts have the first ones.
const TRIM: &str = r#"
DELETE FROM "jobs__logs"
WHERE seq = ?1 AND line < coalesce(
  (SELECT line FROM "jobs__logs"
   WHERE seq = ?1 AND lease >= (SELECT min(lease) FROM "jobs__attempts" WHERE seq = ?1)
   ORDER BY line LIMIT 1),
  9223372036854775807)"#;

const OF_JOB: &str = r#"
SELECT attempt, lease, time, source, level, message FROM "jobs__logs"
WHERE seq = (SELECT seq FROM "jobs" WHERE id = ?1)
  AND line >= ?2 + (SELECT min(line) FROM "jobs__logs" WHERE seq = (SELECT seq FROM "jobs" WHERE id = ?1))
ORDER BY line"#;

pub(super) fn append(db: &Session<'_>, lease: &Lease, attempt: u32, lines: &[LogLine]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let seq = lease.job.seq();
    let first: i64 = db.first(NEXT_LINE, [seq], |row| row.get(0))?.unwrap_or(0);
    for (number, line) in (first..).zip(lines) {
        let (time, source) = (line.time.as_millis(), line.source.as_str());
        db.execute(INSERT, params![seq, number, lease.token, attempt, time, source, line.level, line.message])?;
    }
    Ok(())
}

/// Deletes the lines of attempts that the ledger no longer has.
pub(super) fn trim(db: &Session<'_>, job: JobRef) -> Result<()> {
    db.execute(TRIM, [job.seq()]).map(drop)
}

pub(super) fn logs(db: &Session<'_>, id: &Id, skip: usize) -> Result<Vec<LogLine>> {
    db.all(OF_JOB, params![id.as_str(), i64::try_from(skip).unwrap_or(i64::MAX)], read)
}

fn read(row: &Row<'_>) -> Result<LogLine> {
    Ok(LogLine {
        attempt: row::small(row, 0)?,
        lease: row.get(1)?,
        time: row::instant(row, 2)?,
        source: row::word(row, 3, LogSource::parse)?,
        level: row::optional_text(row, 4)?.and_then(|word| level(&word)),
        message: row::text(row, 5)?,
    })
}

fn level(word: &str) -> Option<&'static str> {
    ["debug", "info", "warn", "error"].into_iter().find(|level| *level == word)
}
