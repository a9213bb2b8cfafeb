//! A worker stopped renewing: running → failed, or dead.

use rusqlite::{Result, Row, params};

use super::ledger::{self, Entry};
use super::session::Session;
use super::{fail, row};
use crate::queue::{Id, Lease, Next, Outcome, Policies, Recorded, Rescued, Status, Timestamp};

const EXPIRED: &str = r#"
SELECT seq, lease, id, type, worker, attempts, max_attempts, started_at FROM "jobs" INDEXED BY "jobs__lease"
WHERE status = 'running' AND ifnull(lease_until, 0) <= ?1
ORDER BY ifnull(lease_until, 0) LIMIT ?2"#;

/// Only what had expired at `horizon`.
pub(super) fn rescue(db: &Session<'_>, policies: &Policies, horizon: Timestamp, limit: usize) -> Result<Vec<Rescued>> {
    let mut rescued = Vec::new();
    for lost in expired(db, horizon, limit)? {
        let error = match &lost.worker {
            Some(worker) => format!("lost: worker `{worker}` stopped renewing its lease"),
            None => "lost: its worker stopped renewing the lease".to_owned(),
        };
        let started_at = lost.started_at.unwrap_or(db.now());
        let mut entry = Entry::without_receipt(lost.lease, lost.attempts, Outcome::Lost, started_at, db.now());
        entry.error = Some(&error);
        let policy = policies.of(&lost.job_type);
        let next = policy.after_failure(Outcome::Lost, entry.attempt, lost.max_attempts, None, fastrand::f64());
        if fail::settle(db, lost.lease, entry.attempt, started_at, &error, next)? == Recorded::Yes {
            ledger::add(db, &entry)?;
            let status = if next == Next::Dead { Status::Dead } else { Status::Failed };
            rescued.push(Rescued { id: lost.id, job_type: lost.job_type, worker: lost.worker, status });
        }
    }
    Ok(rescued)
}

/// The answer where no lease has run out.
pub(super) fn look(db: &Session<'_>, horizon: Timestamp) -> Result<Option<Vec<Rescued>>> {
    Ok(expired(db, horizon, 1)?.is_empty().then(Vec::new))
}

struct Lost {
    lease: Lease,
    id: Id,
    job_type: String,
    worker: Option<String>,
    attempts: u32,
    max_attempts: Option<u32>,
    started_at: Option<Timestamp>,
}

fn expired(db: &Session<'_>, horizon: Timestamp, limit: usize) -> Result<Vec<Lost>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.all(EXPIRED, params![horizon.as_millis(), limit], read)
}

fn read(row: &Row<'_>) -> Result<Lost> {
    Ok(Lost {
        lease: Lease { seq: row.get(0)?, token: row.get(1)? },
        id: row::id(row, 2)?,
        job_type: row::text(row, 3)?,
        worker: row::optional_text(row, 4)?,
        attempts: row::small(row, 5)?,
        max_attempts: row::optional_small(row, 6)?,
        started_at: row::optional_instant(row, 7)?,
    })
}
