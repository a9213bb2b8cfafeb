//! Deletes jobs by request, with their attempts and logs.

use rusqlite::Result;

use super::foreign_keys::Referrers;
use super::session::Session;
use super::{prune, row};
use crate::queue::{Deleted, JobRef, Status};

const STATUS: &str = r#"SELECT status FROM "jobs" WHERE seq = ?1"#;

pub(super) fn delete_many(db: &Session<'_>, jobs: &[JobRef], from: &[Status]) -> Result<Deleted> {
    let referrers = Referrers::find(db)?;
    let mut deleted = Deleted::default();
    for job in jobs {
        let status = db.first(STATUS, [job.seq()], |row| row::status(row, 0))?;
        if status.is_none_or(|status| status == Status::Running || !from.contains(&status)) {
            deleted.gone += 1;
            continue;
        }
        match prune::delete(db, &referrers, *job)? {
            None => deleted.deleted += 1,
            Some(obstacle) => {
                deleted.kept += 1;
                deleted.obstacles.insert(obstacle);
            }
        }
    }
    Ok(deleted)
}
