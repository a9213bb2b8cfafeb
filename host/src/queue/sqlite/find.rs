//! One job, by its id or by the key it holds.

use rusqlite::Result;

use super::enqueue;
use super::row::{self, job_columns};
use super::session::Session;
use crate::queue::{Id, Job, Lease};

const BY_ID: &str = concat!("SELECT ", job_columns!(), r#" FROM "jobs" WHERE id = ?1"#);

const HOLDS: &str = r#"SELECT lease = ?2 AND status = 'running' FROM "jobs" WHERE seq = ?1 AND id = ?3"#;

pub(super) fn find(db: &Session<'_>, id: &Id) -> Result<Option<Job>> {
    db.first(BY_ID, [id.as_str()], row::job)
}

/// The unfinished job that holds `key`, unless it is the one with lease `except`.
pub(super) fn holder(db: &Session<'_>, key: &str, except: Option<Lease>) -> Result<Option<Id>> {
    let Some(id) = enqueue::holder(db, key)? else { return Ok(None) };
    let Some(lease) = except else { return Ok(Some(id)) };
    let excepted = db.first(HOLDS, (lease.seq, lease.token, id.as_str()), |row| row.get(0))?;
    Ok((excepted != Some(true)).then_some(id))
}
