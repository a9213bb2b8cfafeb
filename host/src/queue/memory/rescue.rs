//! Attempts that nobody ends any more: running → failed, or dead; pending again, where the guest never started.

use std::time::Duration;

use super::table::Table;
use crate::queue::lost::{self, Proof};
use crate::queue::{JobRef, Lease, Outcome, Rescued, RetryPolicies, Status, Timestamp, WorkerName};

/// Which attempts nobody ends any more.
#[derive(Clone, Copy, Debug)]
pub struct Gone<'a> {
    /// Those of these workers.
    pub dead: &'a [WorkerName],
    /// Those whose lease lies further ahead than this, and those whose lease is over; `None`: neither.
    pub max_lease: Option<Duration>,
    /// The most to end at once.
    pub limit: usize,
}

impl Table {
    /// Ends the attempts that are `gone`, those whose lease ran out first before the others.
    ///
    /// `started` tells whether the guest of a lease may have started; `chance` moves the backoff and is asked once a lost attempt.
    pub fn rescue(
        &mut self,
        policies: &RetryPolicies,
        gone: Gone<'_>,
        started: impl Fn(&Lease) -> bool,
        mut chance: impl FnMut() -> f64,
        now: Timestamp,
    ) -> Vec<Rescued> {
        let mut rescued = Vec::new();
        for job in self.gone(gone, now) {
            let Some(row) = self.rows.get(&job) else { continue };
            let worker = row.job.worker.as_deref().map(WorkerName::new);
            let proof = match &worker {
                Some(worker) if gone.dead.contains(worker) => Proof::Death,
                _ => Proof::Lease,
            };
            let lease = worker.map(|worker| Lease { job, token: row.job.lease, worker });
            let is_started = lease.as_ref().is_none_or(&started);
            rescued.extend(match lease.filter(|_| !is_started) {
                Some(lease) => self.put_back(&lease),
                None => self.lose(job, proof, policies, chance(), now),
            });
        }
        rescued
    }

    fn gone(&self, gone: Gone<'_>, now: Timestamp) -> Vec<JobRef> {
        let running = &self.indexes.running;
        let last = JobRef::from_seq(i64::MAX);
        let is_over = |until: Option<Timestamp>| {
            gone.max_lease.is_some_and(|max| until <= Some(now) || until > Some(now.after(max)))
        };
        let over = gone
            .max_lease
            .into_iter()
            .flat_map(|max| running.range(..=(Some(now), last)).chain(running.range((Some(now.after(max)), last)..)));
        let is_of_dead = |(until, job): &&(Option<Timestamp>, JobRef)| {
            let worker = self.rows.get(job).and_then(|row| row.job.worker.as_deref());
            !is_over(*until) && gone.dead.iter().any(|dead| Some(dead.as_str()) == worker)
        };
        let dead = running.iter().filter(|_| !gone.dead.is_empty()).filter(is_of_dead);
        over.chain(dead).map(|(_, job)| *job).take(gone.limit).collect()
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
        proof: Proof,
        policies: &RetryPolicies,
        chance: f64,
        now: Timestamp,
    ) -> Option<Rescued> {
        self.change(job, |row| {
            let error = lost::error(row.job.worker.as_deref(), proof);
            row.close_without_receipt(Outcome::Lost, Some(error.clone()), now);
            let job = &row.job;
            let next = policies.after_loss(&job.job_type, job.attempts, job.max_attempts, chance);
            row.job.attempts = row.job.attempts.saturating_add(1);
            row.job.started_at = row.job.started_at.or(Some(now));
            row.settle(error, next, now);
            let job = &row.job;
            let (id, job_type, worker) = (job.id.clone(), job.job_type.clone(), job.worker.clone());
            Rescued { id, job_type, worker, status: job.status }
        })
    }
}
