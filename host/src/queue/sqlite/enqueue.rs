//! Enqueue.

use rusqlite::{Result, params};

use super::row;
use super::session::Session;
use crate::queue::{Enqueued, Id, Key, NewJob};

/// Inserts nothing if an unfinished job holds the key.
const INSERT: &str = r#"
INSERT INTO "jobs" (id, type, payload, priority, max_attempts, timeout_ms, scheduled_at, created_at, unique_key, deferred)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?7 > ?8)
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND status IN ('pending', 'running', 'failed') DO NOTHING"#;

const HOLDER: &str = r#"
SELECT id FROM "jobs" INDEXED BY "jobs__key"
WHERE unique_key = ?1 AND unique_key IS NOT NULL AND status IN ('pending', 'running', 'failed')"#;

pub(super) fn enqueue(db: &Session<'_>, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    jobs.iter().map(|job| add(db, job)).collect()
}

fn add(db: &Session<'_>, job: &NewJob) -> Result<Enqueued> {
    let now = db.now();
    let added = db.execute(
        INSERT,
        params![
            job.id.as_str(),
            job.job_type.as_str(),
            job.payload.as_str(),
            job.priority,
            job.max_attempts,
            job.timeout_millis(),
            job.due.instant(now).as_millis(),
            now.as_millis(),
            job.key.as_ref().map(Key::as_str),
        ],
    )?;
    match &job.key {
        Some(key) if added == 0 => {
            holder(db, key.as_str())?.map(Enqueued::Held).ok_or(rusqlite::Error::QueryReturnedNoRows)
        }
        _ => Ok(Enqueued::Added(job.id.clone())),
    }
}

/// The unfinished job that holds `key`.
pub(super) fn holder(db: &Session<'_>, key: &str) -> Result<Option<Id>> {
    db.first(HOLDER, [key], |row| row::id(row, 0))
}
