//! Finished jobs that are old enough are deleted, and with them, by a trigger, their ledger and logs.

use rusqlite::{Result, params};

use super::session::Session;
use super::{row, select};
use crate::queue::{JobRef, Pruned, Retention, Selected, Status};

/// The oldest of one finished state.
const OLD: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__done"
WHERE (status = 'completed' OR status = 'dead' OR status = 'cancelled') AND status = ?1 AND completed_at <= ?2
ORDER BY completed_at LIMIT ?3"#;

const DELETE: &str = r#"DELETE FROM "jobs" WHERE seq = ?1"#;

pub(super) fn prune(db: &Session<'_>, retention: &Retention, limit: usize) -> Result<Pruned> {
    let old = old(db, retention, limit)?;
    for job in &old {
        db.execute(DELETE, [job.seq()])?;
    }
    Ok(Pruned { deleted: old.len(), more: old.len() == limit })
}

/// The answer where nothing is old enough.
pub(super) fn look(db: &Session<'_>, retention: &Retention) -> Result<Option<Pruned>> {
    Ok(old(db, retention, 1)?.is_empty().then_some(Pruned { deleted: 0, more: false }))
}

/// All that is old enough now, by the query that deletes.
pub(super) fn prunable(db: &Session<'_>, retention: &Retention) -> Result<Selected> {
    select::with_first_ids(db, old(db, retention, usize::MAX)?)
}

fn old(db: &Session<'_>, retention: &Retention, limit: usize) -> Result<Vec<JobRef>> {
    let kept = [
        (Status::Completed, retention.completed),
        (Status::Cancelled, retention.cancelled),
        (Status::Dead, retention.dead),
    ];
    let mut old = Vec::new();
    for (status, retention) in kept {
        let Some(retention) = retention else { continue };
        let horizon = db.now().before(retention).as_millis();
        let room = i64::try_from(limit.saturating_sub(old.len())).unwrap_or(i64::MAX);
        old.extend(db.all(OLD, params![status.as_str(), horizon, room], |row| row::reference(row, 0))?);
    }
    Ok(old)
}
