//! What a heartbeat writes about running attempts: longer leases, log lines and progress.

use std::time::Duration;

use rusqlite::{Result, params};

use super::session::Session;
use super::{logs, row};
use crate::queue::{Lease, Progress, StaleLease, Status};

/// Renews a lease even after it expired, as long as no daemon has rescued the job.
const RENEW: &str = r#"
UPDATE "jobs" SET lease_until = ?4 WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

const STATUS: &str = r#"SELECT status FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND worker = ?3"#;

const ATTEMPTS: &str =
    r#"SELECT attempts FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

const PROGRESS: &str = r#"
UPDATE "jobs" SET progress_percent = ?4, progress_message = ?5
WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running'"#;

pub(super) fn renew(db: &Session<'_>, leases: &[Lease], hold: Duration) -> Result<Vec<StaleLease>> {
    let until = db.now().after(hold).as_millis();
    for lease in leases {
        let (seq, token, worker) = row::fence(lease);
        db.execute(RENEW, params![seq, token, worker, until])?;
    }
    stale(db, leases)
}

/// The leases that are no longer valid.
pub(super) fn stale(db: &Session<'_>, leases: &[Lease]) -> Result<Vec<StaleLease>> {
    let mut stale = Vec::new();
    for lease in leases {
        let status = db.first(STATUS, row::fence(lease), |row| row::status(row, 0))?;
        if status != Some(Status::Running) {
            stale.push(StaleLease { lease: lease.clone(), cancelled: status == Some(Status::Cancelled) });
        }
    }
    Ok(stale)
}

/// Skips entries whose lease is stale.
pub(super) fn save_progress(db: &Session<'_>, entries: &[Progress]) -> Result<()> {
    for entry in entries {
        let lease = &entry.lease;
        let (seq, token, worker) = row::fence(lease);
        let attempts = db.first(ATTEMPTS, (seq, token, worker), |row| row::small(row, 0))?;
        let Some(attempts) = attempts else { continue };
        logs::append(db, lease, attempts.saturating_add(1), &entry.lines)?;
        if let Some((percent, message)) = &entry.progress {
            db.execute(PROGRESS, params![seq, token, worker, percent, message])?;
        }
    }
    Ok(())
}
