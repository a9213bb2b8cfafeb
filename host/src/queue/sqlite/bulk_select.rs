//! Which jobs a bulk verb takes: their rows, read from the index of each state in one snapshot.

use rusqlite::{Result, params};

use super::row;
use super::session::Session;
use crate::queue::{JobRef, Selected, Selection, Status};

/// The age comes last: without it, SQLite need not read the row.
const RUNNING: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__lease"
WHERE status = 'running' AND ?1 = 'running' AND (?2 IS NULL OR type = ?2) AND (?3 IS NULL OR created_at <= ?3)
ORDER BY ifnull(lease_until, 0) LIMIT ?4"#;

const WAITING: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed') AND deferred = 0 AND status = ?1 AND (?2 IS NULL OR type = ?2) AND (?3 IS NULL OR created_at <= ?3)
ORDER BY type, priority DESC, scheduled_at, seq LIMIT ?4"#;

const DEFERRED: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__deferred"
WHERE status IN ('pending', 'failed') AND deferred = 1 AND status = ?1 AND (?2 IS NULL OR type = ?2) AND (?3 IS NULL OR created_at <= ?3)
ORDER BY type, scheduled_at, seq LIMIT ?4"#;

const ENDED: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__done"
WHERE (status = 'completed' OR status = 'dead' OR status = 'cancelled') AND status = ?1
  AND (?3 IS NULL OR completed_at <= ?3) AND (?2 IS NULL OR type = ?2)
ORDER BY completed_at LIMIT ?4"#;

const ID: &str = r#"SELECT id FROM "jobs" WHERE seq = ?1"#;

pub(super) fn select(db: &Session<'_>, selection: &Selection) -> Result<Selected> {
    let by_age = selection.older_than.map(|age| db.now().before(age).as_millis());
    // `before` is exclusive.
    let by_instant = selection.before.map(|instant| instant.as_millis().saturating_sub(1));
    let horizon = by_age.into_iter().chain(by_instant).min();
    let mut jobs: Vec<JobRef> = Vec::new();
    for status in Status::ALL.into_iter().filter(|status| selection.states.contains(status)) {
        for sql in of_state(status) {
            let room = i64::try_from(selection.limit.saturating_sub(jobs.len())).unwrap_or(i64::MAX);
            let wanted = params![status.as_str(), selection.job_type, horizon, room];
            jobs.extend(db.all(sql, wanted, |row| row::reference(row, 0))?);
        }
    }
    with_first_ids(db, jobs)
}

/// Adds the ids of the first few.
pub(super) fn with_first_ids(db: &Session<'_>, jobs: Vec<JobRef>) -> Result<Selected> {
    let mut first = Vec::new();
    for job in jobs.iter().take(Selected::FIRST) {
        first.extend(db.first(ID, [job.seq()], |row| row::id(row, 0))?);
    }
    Ok(Selected { jobs, first })
}

/// One statement for each index that has jobs of this state.
const fn of_state(status: Status) -> &'static [&'static str] {
    match status {
        Status::Running => &[RUNNING],
        Status::Pending | Status::Failed => &[WAITING, DEFERRED],
        Status::Completed | Status::Dead | Status::Cancelled => &[ENDED],
    }
}
