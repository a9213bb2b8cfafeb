//! The reaper's verb: running → failed, or dead; → pending if the guest never started.

use std::time::Duration;

use super::table::Table;
use crate::queue::retry::LossCause;
use crate::queue::{JobRef, Lease, Outcome, Rescued, RetryPolicies, Status, Timestamp, WorkerName};

/// Which attempts count as lost.
#[derive(Clone, Copy, Debug)]
pub struct LostAttempts<'a> {
    /// Those of these dead workers.
    pub dead: &'a [WorkerName],
    /// Those whose lease has expired, or ends later than this from now; `None`: neither.
    pub max_lease: Option<Duration>,
    /// The most to end.
    pub limit: usize,
}

impl Table {
    /// Ends lost attempts, the oldest leases first.
    ///
    /// `started`: whether the guest of a lease may have started. `chance`: the jitter of the backoff, called once for each.
    pub fn rescue(
        &mut self,
        policies: &RetryPolicies,
        lost: LostAttempts<'_>,
        started: impl Fn(&Lease) -> bool,
        mut chance: impl FnMut() -> f64,
        now: Timestamp,
    ) -> Vec<Rescued> {
        let mut rescued = Vec::new();
        for job in self.lost(lost, now) {
            let Some(row) = self.rows.get(&job) else { continue };
            let worker = row.job.worker.as_deref().map(WorkerName::new);
            let cause = match &worker {
                Some(worker) if lost.dead.contains(worker) => LossCause::WorkerDied,
                _ => LossCause::LeaseExpired,
            };
            let lease = worker.map(|worker| Lease { job, token: row.job.lease, worker });
            let is_started = lease.as_ref().is_none_or(&started);
            rescued.extend(match lease.filter(|_| !is_started) {
                Some(lease) => self.put_back(&lease),
                None => self.lose(job, cause, policies, chance(), now),
            });
        }
        rescued
    }

    fn lost(&self, lost: LostAttempts<'_>, now: Timestamp) -> Vec<JobRef> {
        let running = &self.indexes.running;
        let last = JobRef::from_seq(i64::MAX);
        let is_expired = |until: Option<Timestamp>| {
            lost.max_lease.is_some_and(|max| until <= Some(now) || until > Some(now.after(max)))
        };
        let expired = lost
            .max_lease
            .into_iter()
            .flat_map(|max| running.range(..=(Some(now), last)).chain(running.range((Some(now.after(max)), last)..)));
        let is_of_dead = |(until, job): &&(Option<Timestamp>, JobRef)| {
            let worker = self.rows.get(job).and_then(|row| row.job.worker.as_deref());
            !is_expired(*until) && lost.dead.iter().any(|dead| Some(dead.as_str()) == worker)
        };
        let dead = running.iter().filter(|_| !lost.dead.is_empty()).filter(is_of_dead);
        expired.chain(dead).map(|(_, job)| *job).take(lost.limit).collect()
    }

    fn put_back(&mut self, lease: &Lease) -> Option<Rescued> {
        let job = &self.rows.get(&lease.job)?.job;
        let (id, job_type, worker) = (job.id.clone(), job.job_type.clone(), job.worker.clone());
        self.release(std::slice::from_ref(lease));
        Some(Rescued { id, job_type, worker, status: Status::Pending })
    }

    fn lose(
        &mut self,
        job: JobRef,
        cause: LossCause,
        policies: &RetryPolicies,
        chance: f64,
        now: Timestamp,
    ) -> Option<Rescued> {
        self.change(job, |row| {
            let error = cause.error(row.job.worker.as_deref());
            row.end_attempt_without_receipt(Outcome::Lost, Some(error.clone()), now);
            let job = &row.job;
            let next = policies.after_loss(&job.job_type, job.attempts, job.max_attempts, chance);
            row.job.attempts = row.job.attempts.saturating_add(1);
            row.job.started_at = row.job.started_at.or(Some(now));
            row.fail(error, next, now);
            let job = &row.job;
            let (id, job_type, worker) = (job.id.clone(), job.job_type.clone(), job.worker.clone());
            Rescued { id, job_type, worker, status: job.status }
        })
    }
}
