//! The attempts of a job that have ended, as the ledger has them.

use std::time::Duration;

use rusqlite::{Result, Row};

use super::session::Session;
use super::{find, row};
use crate::queue::{AttemptRecord, Digest, Id, Job, Outcome};

const OF_JOB: &str = r#"
SELECT attempt, outcome, error, lease, started_at, duration_ms, fuel, peak_memory_bytes, digest FROM "jobs__attempts"
WHERE seq = (SELECT seq FROM "jobs" WHERE id = ?1)
ORDER BY lease"#;

pub(super) fn attempts(db: &Session<'_>, id: &Id) -> Result<Vec<AttemptRecord>> {
    db.all(OF_JOB, [id.as_str()], read)
}

pub(super) fn history(db: &Session<'_>, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>> {
    let Some(job) = find::find(db, id)? else { return Ok(None) };
    Ok(Some((job, attempts(db, id)?)))
}

fn read(row: &Row<'_>) -> Result<AttemptRecord> {
    Ok(AttemptRecord {
        attempt: row::small(row, 0)?,
        outcome: row::word(row, 1, Outcome::parse)?,
        error: row::optional_text(row, 2)?,
        lease: row.get(3)?,
        started_at: row::instant(row, 4)?,
        duration: Duration::from_millis(row::big(row, 5)?),
        fuel: row::optional_big(row, 6)?,
        peak_memory: row::optional_big(row, 7)?,
        digest: row.get::<_, Option<[u8; 32]>>(8)?.map(Digest),
    })
}
