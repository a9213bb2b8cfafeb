//! Enqueue.

use super::history::History;
use super::table::{Row, Table};
use crate::queue::{Enqueued, Id, Job, JobRef, Lease, NewJob, Status, StoreError, Timestamp};

impl Table {
    /// Adds jobs, all or none. Results are in the same order.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if an id is taken or a job has a limit of zero attempts.
    pub fn enqueue(&mut self, jobs: Vec<NewJob>, now: Timestamp) -> Result<Vec<Enqueued>, StoreError> {
        let before = self.inserted;
        let added: Result<Vec<Enqueued>, StoreError> = jobs.into_iter().map(|job| self.add(job, now)).collect();
        if added.is_err() {
            (before + 1..=self.inserted).for_each(|seq| self.delete(JobRef::from_seq(seq)));
            self.inserted = before;
        }
        added
    }

    /// The unfinished job that holds `key`, unless it is the one with lease `except`.
    pub fn holder(&self, key: &str, except: Option<&Lease>) -> Option<&Id> {
        let row = self.rows.get(&self.indexes.of_key(key)?)?;
        let is_excepted =
            |lease: &Lease| row.job.reference == lease.job && row.job.status == Status::Running && row.holds(lease);
        (!except.is_some_and(is_excepted)).then_some(&row.job.id)
    }

    fn add(&mut self, new: NewJob, now: Timestamp) -> Result<Enqueued, StoreError> {
        if let Some(holder) = new.key.as_ref().and_then(|key| self.holder(key.as_str(), None)) {
            return Ok(Enqueued::Held(holder.clone()));
        }
        if new.max_attempts == Some(0) {
            return Err(StoreError::Refused("max_attempts must be at least 1".to_owned()));
        }
        let reference = JobRef::from_seq(self.inserted + 1);
        if !self.indexes.add_id(&new.id, reference) {
            return Err(StoreError::Refused(format!("there is already a job with the id `{}`", new.id)));
        }
        self.inserted += 1;
        let row = Row { job: new_row(new, reference, now), history: History::default() };
        let id = row.job.id.clone();
        self.indexes.add(&row.job);
        self.rows.insert(reference, row);
        Ok(Enqueued::Added(id))
    }
}

fn new_row(new: NewJob, reference: JobRef, now: Timestamp) -> Job {
    let timeout = new.timeout_millis().map(|millis| std::time::Duration::from_millis(millis.unsigned_abs()));
    Job {
        reference,
        id: new.id,
        job_type: new.job_type.as_str().to_owned(),
        payload: new.payload.into_text(),
        status: Status::Pending,
        priority: new.priority,
        attempts: 0,
        max_attempts: new.max_attempts,
        timeout,
        scheduled_at: new.due.instant(now),
        started_at: None,
        completed_at: None,
        result: None,
        error: None,
        created_at: now,
        key: new.key.map(|key| key.as_str().to_owned()),
        lease: 0,
        lease_until: None,
        worker: None,
        progress: None,
    }
}
