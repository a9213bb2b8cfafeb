//! One job, by its id or by the key it holds.

use rusqlite::Result;

use super::enqueue;
use super::row::{self, job_columns};
use super::session::Session;
use crate::queue::{Id, Job, Lease};

const BY_ID: &str = concat!("SELECT ", job_columns!(), r#" FROM "jobs" WHERE id = ?1"#);

const HOLDS: &str =
    r#"SELECT 1 FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running' AND id = ?4"#;

pub(super) fn find(db: &Session<'_>, id: &Id) -> Result<Option<Job>> {
    db.first(BY_ID, [id.as_str()], row::job)
}

/// The unfinished job that holds `key`, unless it is the one with lease `except`.
pub(super) fn holder(db: &Session<'_>, key: &str, except: Option<Lease>) -> Result<Option<Id>> {
    let Some(id) = enqueue::holder(db, key)? else { return Ok(None) };
    let Some(lease) = except else { return Ok(Some(id)) };
    let (seq, token, worker) = row::fence(&lease);
    let excepted = db.first(HOLDS, (seq, token, worker, id.as_str()), |_| Ok(()))?;
    Ok(excepted.is_none().then_some(id))
}
