//! One job, by its id or by the key it holds.

use rusqlite::{Result, params};

use super::enqueue;
use super::row::{self, job_columns};
use super::session::Session;
use crate::queue::{Id, Job, Lease, Resolved};

const BY_ID: &str = concat!("SELECT ", job_columns!(), r#" FROM "jobs" WHERE id = ?1"#);

/// Ids that begin with a text: a range of their index.
const BY_PREFIX: &str = r#"SELECT id FROM "jobs" WHERE id >= ?1 AND id < ?1 || char(0x10ffff) ORDER BY id LIMIT ?2"#;

const HAS_ID: &str = r#"SELECT 1 FROM "jobs" WHERE id = ?1"#;

const HOLDS: &str =
    r#"SELECT 1 FROM "jobs" WHERE seq = ?1 AND lease = ?2 AND worker = ?3 AND status = 'running' AND id = ?4"#;

pub(super) fn find(db: &Session<'_>, id: &Id) -> Result<Option<Job>> {
    db.first(BY_ID, [id.as_str()], row::job)
}

/// The job whose id this is, or begins with it.
pub(super) fn resolve(db: &Session<'_>, id: &Id) -> Result<Resolved> {
    if db.first(HAS_ID, [id.as_str()], |_| Ok(()))?.is_some() {
        return Ok(Resolved::Job(id.clone()));
    }
    if id.as_str().chars().count() < Resolved::MIN_PREFIX {
        return Ok(Resolved::NotFound);
    }
    let candidates = db.all(BY_PREFIX, params![id.as_str(), Resolved::LISTED as i64], |row| row::id(row, 0))?;
    Ok(Resolved::of_candidates(candidates))
}

/// The unfinished job that holds `key`, unless it is the one with lease `except`.
pub(super) fn holder(db: &Session<'_>, key: &str, except: Option<Lease>) -> Result<Option<Id>> {
    let Some(id) = enqueue::holder(db, key)? else { return Ok(None) };
    let Some(lease) = except else { return Ok(Some(id)) };
    let (seq, token, worker) = row::fence(&lease);
    let excepted = db.first(HOLDS, (seq, token, worker, id.as_str()), |_| Ok(()))?;
    Ok(excepted.is_none().then_some(id))
}
