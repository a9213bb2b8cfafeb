//! Deletes jobs by request, with their attempts and logs.

use super::table::Table;
use crate::queue::{Deleted, JobRef, Status};

impl Table {
    /// Deletes every job of `jobs` that is in one of the states `from` and not running.
    pub fn delete_many(&mut self, jobs: &[JobRef], from: &[Status]) -> Deleted {
        let mut deleted = Deleted::default();
        for job in jobs {
            let status = self.rows.get(job).map(|row| row.job.status);
            if status.is_some_and(|status| status != Status::Running && from.contains(&status)) {
                self.delete(*job);
                deleted.deleted += 1;
            } else {
                deleted.gone += 1;
            }
        }
        deleted
    }
}
