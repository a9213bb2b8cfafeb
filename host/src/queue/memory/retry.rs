//! Retry by hand: failed, dead, cancelled → pending.

use super::table::Table;
use crate::queue::{BulkResult, Event, Id, JobRef, Retried, RetryPolicies, Status, Timestamp};

impl Table {
    /// failed, dead or cancelled → pending, due now, with at least one more attempt.
    pub fn retry(&mut self, id: &Id, policies: &RetryPolicies, now: Timestamp) -> Retried {
        self.indexes.of_id(id).map_or(Retried::NotFound, |job| self.retry_one(job, policies, now))
    }

    /// [`retry`](Self::retry) for every job of `jobs` that is still in one of the states `from`.
    pub fn retry_many(
        &mut self,
        jobs: &[JobRef],
        from: &[Status],
        policies: &RetryPolicies,
        now: Timestamp,
    ) -> BulkResult {
        let mut answer = BulkResult::default();
        for job in jobs {
            let asked = self.rows.get(job).is_some_and(|row| from.contains(&row.job.status));
            match asked.then(|| self.retry_one(*job, policies, now)) {
                Some(Retried::From(_)) => answer.moved += 1,
                Some(Retried::KeyTaken(_)) => answer.key_taken += 1,
                Some(Retried::Forbidden(_) | Retried::NotFound) | None => answer.gone += 1,
            }
        }
        answer
    }

    fn retry_one(&mut self, job: JobRef, policies: &RetryPolicies, now: Timestamp) -> Retried {
        let Some(row) = self.rows.get(&job) else { return Retried::NotFound };
        let status = row.job.status;
        let Some(after) = status.after(Event::Retry) else { return Retried::Forbidden(status) };
        let key = row.job.key.as_deref().filter(|_| status.is_terminal());
        if let Some(holder) = key.and_then(|key| self.holder(key, None)) {
            return Retried::KeyTaken(holder.clone());
        }
        self.change(job, |row| {
            let job = &mut row.job;
            job.max_attempts = policies.of(&job.job_type).limit_for_retry(job.attempts, job.max_attempts);
            job.status = after;
            job.scheduled_at = now;
            job.completed_at = None;
        });
        Retried::From(status)
    }
}
