//! The rows, and what the verbs share: find a row, check its lease, change it.

use std::collections::BTreeMap;

use super::history::History;
use super::indexes::Indexes;
use crate::queue::{AttemptRecord, Id, Job, JobRef, Lease, LogLine, Resolved, Status};

/// A queue as a value. Each verb of [`Store`](crate::queue::Store) is a method that takes the time.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(super) rows: BTreeMap<JobRef, Row>,
    pub(super) indexes: Indexes,
    /// The number of jobs ever added. A row number is never reused.
    pub(super) inserted: i64,
}

/// A job with its attempts and log lines.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) job: Job,
    pub(super) history: History,
}

impl Table {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every job, in order of insertion.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.rows.values().map(|row| &row.job)
    }

    /// One job.
    pub fn find(&self, id: &Id) -> Option<&Job> {
        self.row(id).map(|row| &row.job)
    }

    /// The job whose id this is, or begins with it.
    pub fn resolve(&self, id: &Id) -> Resolved {
        if self.find(id).is_some() {
            return Resolved::Job(id.clone());
        }
        if id.as_str().chars().count() < Resolved::MIN_PREFIX {
            return Resolved::NotFound;
        }
        Resolved::of_candidates(self.indexes.ids_from(id).take(Resolved::LISTED).cloned().collect())
    }

    /// The last 100 attempts of a job that have ended, oldest first.
    pub fn attempts(&self, id: &Id) -> &[AttemptRecord] {
        self.row(id).map_or(&[], |row| &row.history.attempts)
    }

    /// Their log lines, in order.
    pub fn logs(&self, id: &Id) -> &[LogLine] {
        self.row(id).map_or(&[], |row| &row.history.lines)
    }

    pub(super) fn row(&self, id: &Id) -> Option<&Row> {
        self.rows.get(&self.indexes.of_id(id)?)
    }

    /// The row of a lease, if the lease is valid.
    pub(super) fn held(&mut self, lease: &Lease) -> Option<&mut Row> {
        self.rows.get_mut(&lease.job).filter(|row| row.holds(lease) && row.job.status == Status::Running)
    }

    /// Changes the row of a lease. `false` if the lease is stale.
    pub(super) fn change_held(&mut self, lease: &Lease, change: impl FnOnce(&mut Row)) -> bool {
        let holds = self.held(lease).is_some();
        if holds {
            self.change(lease.job, change);
        }
        holds
    }

    /// Changes a row and updates the indexes.
    pub(super) fn change<T>(&mut self, job: JobRef, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        let row = self.rows.get_mut(&job)?;
        self.indexes.remove(&row.job);
        let answer = change(row);
        self.indexes.add(&row.job);
        Some(answer)
    }

    pub(super) fn delete(&mut self, job: JobRef) {
        if let Some(row) = self.rows.remove(&job) {
            self.indexes.remove(&row.job);
            self.indexes.remove_id(&row.job.id);
        }
    }
}

impl Row {
    /// Whether this is the latest lease.
    pub(super) fn holds(&self, lease: &Lease) -> bool {
        self.job.lease == lease.token && self.job.worker.as_deref() == Some(lease.worker.as_str())
    }
}
