//! Jobs, newest first.

use rusqlite::{Result, params};

use super::row::{self, job_columns};
use super::session::Session;
use crate::queue::{Filter, Job, Status};

const NEWEST: &str = concat!(
    "SELECT ",
    job_columns!(),
    r#" FROM "jobs"
WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR type = ?2)
ORDER BY seq DESC LIMIT ?3"#
);

pub(super) fn list(db: &Session<'_>, filter: &Filter) -> Result<Vec<Job>> {
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    db.all(NEWEST, params![filter.status.map(Status::as_str), filter.job_type, limit], row::job)
}
