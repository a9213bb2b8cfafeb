//! Indexes of the table: by id, by key, and by position among the waiting, running and finished jobs.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::{Id, Job, JobRef, Priority, Status, Timestamp};

/// The position of a waiting job in the order of claims: highest priority first, then by time, then by insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimPosition {
    inverse_priority: i32,
    pub(super) scheduled_at: Timestamp,
    pub(super) job: JobRef,
}

impl ClaimPosition {
    /// Before every position.
    pub(super) const FIRST: Self = Self {
        inverse_priority: i32::MIN,
        scheduled_at: Timestamp::from_millis(i64::MIN),
        job: JobRef::from_seq(i64::MIN),
    };

    fn of(job: &Job) -> Self {
        let inverse = |priority: Priority| -i32::from(priority);
        Self { inverse_priority: inverse(job.priority), scheduled_at: job.scheduled_at, job: job.reference }
    }

    /// After every position of the same priority.
    pub(super) fn end_of_priority(self) -> Self {
        let (scheduled_at, job) = (Timestamp::from_millis(i64::MAX), JobRef::from_seq(i64::MAX));
        Self { scheduled_at, job, ..self }
    }
}

/// All indexes. A job must be removed before it changes, and added again after.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    ids: BTreeMap<Id, JobRef>,
    /// The unfinished job that holds each key.
    keys: BTreeMap<String, JobRef>,
    /// By type.
    pub(super) waiting: BTreeMap<String, BTreeSet<ClaimPosition>>,
    /// By the end of the lease.
    pub(super) running: BTreeSet<(Option<Timestamp>, JobRef)>,
    /// By state and the end of the job.
    pub(super) ended: BTreeSet<(Status, Option<Timestamp>, JobRef)>,
}

impl Indexes {
    pub(super) fn of_id(&self, id: &Id) -> Option<JobRef> {
        self.ids.get(id).copied()
    }

    /// The ids that begin with this one, in order.
    pub(super) fn ids_from<'a>(&'a self, prefix: &'a Id) -> impl Iterator<Item = &'a Id> {
        let from = self.ids.range::<Id, _>(prefix..).map(|(id, _)| id);
        from.take_while(|id| id.as_str().starts_with(prefix.as_str()))
    }

    /// The unfinished job that holds this key.
    pub(super) fn of_key(&self, key: &str) -> Option<JobRef> {
        self.keys.get(key).copied()
    }

    /// Adds the id of a job; `false` if another job has it.
    pub(super) fn add_id(&mut self, id: &Id, job: JobRef) -> bool {
        let is_free = !self.ids.contains_key(id);
        if is_free {
            self.ids.insert(id.clone(), job);
        }
        is_free
    }

    pub(super) fn remove_id(&mut self, id: &Id) {
        self.ids.remove(id);
    }

    pub(super) fn add(&mut self, job: &Job) {
        match job.status {
            Status::Pending | Status::Failed => match self.waiting.get_mut(job.job_type.as_str()) {
                Some(waiting) => _ = waiting.insert(ClaimPosition::of(job)),
                None => _ = self.waiting.insert(job.job_type.clone(), BTreeSet::from([ClaimPosition::of(job)])),
            },
            Status::Running => _ = self.running.insert((job.lease_until, job.reference)),
            Status::Completed | Status::Dead | Status::Cancelled => {
                self.ended.insert((job.status, job.completed_at, job.reference));
            }
        }
        if let Some(key) = job.key.as_ref().filter(|_| !job.status.is_terminal()) {
            self.keys.insert(key.clone(), job.reference);
        }
    }

    pub(super) fn remove(&mut self, job: &Job) {
        match job.status {
            Status::Pending | Status::Failed => {
                if let Some(waiting) = self.waiting.get_mut(job.job_type.as_str()) {
                    waiting.remove(&ClaimPosition::of(job));
                }
            }
            Status::Running => _ = self.running.remove(&(job.lease_until, job.reference)),
            Status::Completed | Status::Dead | Status::Cancelled => {
                self.ended.remove(&(job.status, job.completed_at, job.reference));
            }
        }
        if let Some(key) = job.key.as_ref().filter(|_| !job.status.is_terminal()) {
            self.keys.remove(key);
        }
    }
}
