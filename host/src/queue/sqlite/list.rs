//! Jobs, newest first.
//!
//! Most lists end within the newest rows, so those are looked at first, one by one. What is rare among them is then found
//! through the index of its state. Only a type that is rare without a state is searched for in the whole table.

use std::cmp::Reverse;

use rusqlite::{Result, params};

use super::row::{self, job_columns};
use super::session::Session;
use crate::queue::{Filter, Job, Status};

const LAST: &str = r#"SELECT coalesce(max(seq), 0) FROM "jobs""#;

const NEWER_THAN: &str = concat!(
    "SELECT ",
    job_columns!(),
    r#" FROM "jobs" NOT INDEXED
WHERE seq > ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR type = ?3)
ORDER BY seq DESC LIMIT ?4"#
);

/// Those of one state, through its index.
macro_rules! of_state {
    ($index:literal, $state:literal) => {
        concat!(
            "SELECT ",
            job_columns!(),
            r#" FROM "jobs" WHERE seq IN (SELECT seq FROM "jobs" INDEXED BY "jobs__"#,
            $index,
            r#"" WHERE "#,
            $state,
            " AND (?1 IS NULL OR type = ?1) ORDER BY seq DESC LIMIT ?2) ORDER BY seq DESC"
        )
    };
}

/// One statement for each index that a job of the state can stand in.
const PENDING: &[&str] = &[
    of_state!("claim", "status IN ('pending', 'failed') AND deferred = 0 AND status = 'pending'"),
    of_state!("deferred", "status IN ('pending', 'failed') AND deferred = 1 AND status = 'pending'"),
];
const RUNNING: &[&str] = &[of_state!("lease", "status = 'running'")];
const COMPLETED: &[&str] = &[of_state!("done", "status = 'completed'")];
const FAILED: &[&str] = &[
    of_state!("claim", "status IN ('pending', 'failed') AND deferred = 0 AND status = 'failed'"),
    of_state!("deferred", "status IN ('pending', 'failed') AND deferred = 1 AND status = 'failed'"),
];
const DEAD: &[&str] = &[of_state!("done", "status = 'dead'")];
const CANCELLED: &[&str] = &[of_state!("done", "status = 'cancelled'")];

/// Rows that are looked at before an index is asked: some milliseconds.
const NEWEST: i64 = 10_000;

pub(super) fn list(db: &Session<'_>, filter: &Filter) -> Result<Vec<Job>> {
    let last: i64 = db.first(LAST, [], |row| row.get(0))?.unwrap_or(0);
    let newest = newer_than(db, filter, last.saturating_sub(NEWEST))?;
    if newest.len() == filter.limit || last <= NEWEST {
        return Ok(newest);
    }
    match filter.status {
        Some(status) => in_state(db, status, filter),
        None => newer_than(db, filter, i64::MIN),
    }
}

fn in_state(db: &Session<'_>, status: Status, filter: &Filter) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for sql in of_state(status) {
        jobs.extend(db.all(sql, params![filter.job_type, limit(filter)], row::job)?);
    }
    jobs.sort_by_key(|job| Reverse(job.reference));
    jobs.truncate(filter.limit);
    Ok(jobs)
}

fn newer_than(db: &Session<'_>, filter: &Filter, seq: i64) -> Result<Vec<Job>> {
    let status = filter.status.map(Status::as_str);
    db.all(NEWER_THAN, params![seq, status, filter.job_type, limit(filter)], row::job)
}

fn limit(filter: &Filter) -> i64 {
    i64::try_from(filter.limit).unwrap_or(i64::MAX)
}

const fn of_state(status: Status) -> &'static [&'static str] {
    match status {
        Status::Pending => PENDING,
        Status::Running => RUNNING,
        Status::Completed => COMPLETED,
        Status::Failed => FAILED,
        Status::Dead => DEAD,
        Status::Cancelled => CANCELLED,
    }
}
