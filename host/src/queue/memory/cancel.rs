//! Cancel: pending, failed, running → cancelled.

use super::table::Table;
use crate::queue::{BulkResult, Cancelled, Event, Id, JobRef, Outcome, Status, Timestamp};

impl Table {
    /// pending, failed or running → cancelled. Ends a running attempt.
    pub fn cancel(&mut self, id: &Id, now: Timestamp) -> Cancelled {
        self.indexes.of_id(id).map_or(Cancelled::NotFound, |job| self.cancel_one(job, now))
    }

    /// [`cancel`](Self::cancel) for every job of `jobs` that is still in one of the states `from`.
    pub fn cancel_many(&mut self, jobs: &[JobRef], from: &[Status], now: Timestamp) -> BulkResult {
        let mut answer = BulkResult::default();
        for job in jobs {
            let asked = self.rows.get(job).is_some_and(|row| from.contains(&row.job.status));
            match asked.then(|| self.cancel_one(*job, now)) {
                Some(Cancelled::From(_)) => answer.moved += 1,
                Some(Cancelled::Forbidden(_) | Cancelled::NotFound) | None => answer.gone += 1,
            }
        }
        answer
    }

    fn cancel_one(&mut self, job: JobRef, now: Timestamp) -> Cancelled {
        let Some(row) = self.rows.get(&job) else { return Cancelled::NotFound };
        let status = row.job.status;
        let Some(after) = status.after(Event::Cancel) else { return Cancelled::Forbidden(status) };
        self.change(job, |row| {
            if status == Status::Running {
                row.end_attempt_without_receipt(Outcome::Cancelled, None, now);
            }
            row.job.status = after;
            row.job.completed_at = Some(now);
            row.job.lease_until = None;
        });
        Cancelled::From(status)
    }
}
