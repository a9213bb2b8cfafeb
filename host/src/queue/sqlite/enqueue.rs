//! A job comes into being.

use rusqlite::{Result, params};

use super::row;
use super::session::Session;
use crate::queue::{Due, Enqueued, Id, NewJob, Timestamp};

/// Does nothing when the key is held.
const INSERT: &str = r#"
INSERT INTO "jobs" (id, type, payload, priority, max_attempts, timeout_ms, scheduled_at, created_at, unique_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND status IN ('pending', 'running', 'failed') DO NOTHING"#;

const HOLDER: &str = r#"
SELECT id FROM "jobs" INDEXED BY "jobs__key"
WHERE unique_key = ?1 AND unique_key IS NOT NULL AND status IN ('pending', 'running', 'failed')"#;

/// The table refuses earlier instants, which are seconds by mistake where a foreign program writes them.
const EARLIEST: Timestamp = Timestamp::from_millis(1_000_000_000_000);

pub(super) fn enqueue(db: &Session<'_>, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    jobs.iter().map(|job| add(db, job)).collect()
}

fn add(db: &Session<'_>, job: &NewJob) -> Result<Enqueued> {
    let now = db.now();
    let scheduled_at = match job.due {
        Due::In(delay) => now.after(delay),
        Due::At(instant) => instant.max(EARLIEST),
    };
    let timeout = job.timeout.map(|timeout| row::millis(timeout).max(1));
    let added = db.execute(
        INSERT,
        params![
            job.id.as_str(),
            job.job_type.as_str(),
            job.payload.as_str(),
            job.priority,
            job.max_attempts,
            timeout,
            scheduled_at.as_millis(),
            now.as_millis(),
            job.key,
        ],
    )?;
    match &job.key {
        Some(key) if added == 0 => holder(db, key)?.map(Enqueued::Held).ok_or(rusqlite::Error::QueryReturnedNoRows),
        _ => Ok(Enqueued::Added(job.id.clone())),
    }
}

/// The unfinished job that holds `key`.
pub(super) fn holder(db: &Session<'_>, key: &str) -> Result<Option<Id>> {
    db.first(HOLDER, [key], |row| row::id(row, 0))
}
