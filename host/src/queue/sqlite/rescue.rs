//! A worker stopped renewing: running → failed, or dead.

use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::fail::{self, Settled};
use super::ledger::{self, Entry};
use super::row;
use super::session::Session;
use crate::queue::{Id, JobRef, Next, Outcome, Policies, Recorded, Rescued, Status, Timestamp};

const EXPIRED: &str = r#"
SELECT seq, lease, id, type, worker, attempts, max_attempts, started_at FROM "jobs" INDEXED BY "jobs__lease"
WHERE status = 'running' AND ifnull(lease_until, 0) <= ?1
ORDER BY ifnull(lease_until, 0) LIMIT ?2"#;

/// No daemon grants such a lease: the clock was ahead when it was granted, and has been set back.
const TOO_FAR_AHEAD: &str = r#"
SELECT seq, lease, id, type, worker, attempts, max_attempts, started_at FROM "jobs" INDEXED BY "jobs__lease"
WHERE status = 'running' AND ifnull(lease_until, 0) > ?1
ORDER BY ifnull(lease_until, 0) LIMIT ?2"#;

/// Which leases are over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    /// Those that had expired at this instant.
    pub(super) horizon: Timestamp,
    /// Those that hold for longer than this from now on.
    pub(super) max_lease: Duration,
}

pub(super) fn rescue(db: &Session<'_>, policies: &Policies, over: Over, limit: usize) -> Result<Vec<Rescued>> {
    let mut rescued = Vec::new();
    for lost in lost(db, over, limit)? {
        let error = match &lost.worker {
            Some(worker) => format!("lost: worker `{worker}` stopped renewing its lease"),
            None => "lost: its worker stopped renewing the lease".to_owned(),
        };
        let started_at = lost.started_at.unwrap_or(db.now());
        let mut entry =
            Entry::without_receipt(lost.job, lost.token, lost.attempts, Outcome::Lost, started_at, db.now());
        entry.error = Some(&error);
        let policy = policies.of(&lost.job_type);
        let next = policy.after_failure(Outcome::Lost, entry.attempt, lost.max_attempts, None, fastrand::f64());
        let (job, token, attempt) = (lost.job, lost.token, entry.attempt);
        let settled = Settled { job, token, worker: None, attempt, started_at, error: &error, next };
        if fail::settle(db, &settled)? == Recorded::Yes {
            ledger::add(db, &entry)?;
            let status = if next == Next::Dead { Status::Dead } else { Status::Failed };
            rescued.push(Rescued { id: lost.id, job_type: lost.job_type, worker: lost.worker, status });
        }
    }
    Ok(rescued)
}

/// The answer where no lease is over.
pub(super) fn look(db: &Session<'_>, over: Over) -> Result<Option<Vec<Rescued>>> {
    Ok(lost(db, over, 1)?.is_empty().then(Vec::new))
}

struct Lost {
    job: JobRef,
    token: i64,
    id: Id,
    job_type: String,
    worker: Option<String>,
    attempts: u32,
    max_attempts: Option<u32>,
    started_at: Option<Timestamp>,
}

fn lost(db: &Session<'_>, over: Over, limit: usize) -> Result<Vec<Lost>> {
    let room = |taken: usize| i64::try_from(limit.saturating_sub(taken)).unwrap_or(i64::MAX);
    let mut lost = db.all(EXPIRED, params![over.horizon.as_millis(), room(0)], read)?;
    if lost.len() < limit {
        let ahead = db.now().after(over.max_lease).as_millis();
        lost.extend(db.all(TOO_FAR_AHEAD, params![ahead, room(lost.len())], read)?);
    }
    Ok(lost)
}

fn read(row: &Row<'_>) -> Result<Lost> {
    Ok(Lost {
        job: row::reference(row, 0)?,
        token: row.get(1)?,
        id: row::id(row, 2)?,
        job_type: row::text(row, 3)?,
        worker: row::optional_text(row, 4)?,
        attempts: row::small(row, 5)?,
        max_attempts: row::optional_small(row, 6)?,
        started_at: row::optional_instant(row, 7)?,
    })
}
