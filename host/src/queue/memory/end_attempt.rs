//! How a worker ends an attempt: complete, fail, snooze, give back, release.

use std::time::Duration;

use super::table::Table;
use crate::queue::{
    AttemptFailure, AttemptWrite, Lease, NewJob, Outcome, Receipt, Status, StoreError, Timestamp, snooze_delay,
};

impl Table {
    /// running → completed. Adds `follow_ups`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if a follow-up is refused. Nothing has changed then.
    pub fn complete(
        &mut self,
        receipt: Receipt,
        result: String,
        follow_ups: Vec<NewJob>,
        now: Timestamp,
    ) -> Result<AttemptWrite, StoreError> {
        let Some(row) = self.held(&receipt.lease) else { return Ok(AttemptWrite::LeaseLost) };
        // The job is completed before its follow-ups are added, so that one of them may take its key.
        let before = (!follow_ups.is_empty()).then(|| row.clone());
        let job = receipt.lease.job;
        self.change(job, |row| {
            row.job.status = Status::Completed;
            row.job.completed_at = Some(now);
            row.job.attempts = receipt.attempt;
            row.job.result = Some(result);
            row.job.error = None;
            row.job.lease_until = None;
            row.end_attempt(receipt, Outcome::Completed, None, now);
        });
        let added = self.enqueue(follow_ups, now);
        if let (Err(_), Some(before)) = (&added, before) {
            self.change(job, |row| *row = before);
        }
        added.map(|_| AttemptWrite::Done)
    }

    /// running → failed, or dead.
    pub fn fail(&mut self, receipt: Receipt, failure: AttemptFailure, now: Timestamp) -> AttemptWrite {
        let AttemptFailure { outcome, error, next } = failure;
        let lease = receipt.lease.clone();
        let holds = self.change_held(&lease, |row| {
            row.job.attempts = receipt.attempt;
            row.end_attempt(receipt, outcome, Some(error.clone()), now);
            row.fail(error, next, now);
        });
        written(holds)
    }

    /// running → pending, due after `delay`. The attempt does not count.
    pub fn snooze(&mut self, receipt: Receipt, delay: Duration, now: Timestamp) -> AttemptWrite {
        let lease = receipt.lease.clone();
        let holds = self.change_held(&lease, |row| {
            row.job.status = Status::Pending;
            row.job.scheduled_at = now.after(snooze_delay(delay));
            row.job.lease_until = None;
            row.end_attempt(receipt, Outcome::Snoozed, None, now);
        });
        written(holds)
    }

    /// running → pending at the same position in the queue.
    pub fn give_back(&mut self, receipt: Receipt, now: Timestamp) -> AttemptWrite {
        let lease = receipt.lease.clone();
        let holds = self.change_held(&lease, |row| {
            row.job.status = Status::Pending;
            row.job.lease_until = None;
            row.end_attempt(receipt, Outcome::GivenBack, None, now);
        });
        written(holds)
    }

    /// running → pending at the same position in the queue, without an attempt.
    pub fn release(&mut self, leases: &[Lease]) {
        for lease in leases {
            self.change_held(lease, |row| {
                row.job.status = Status::Pending;
                row.job.lease_until = None;
                row.forget_attempt();
            });
        }
    }
}

impl super::table::Row {
    /// Changes a job whose attempt failed. The caller adds the attempt.
    pub(super) fn fail(&mut self, error: String, next: crate::queue::Next, now: Timestamp) {
        let job = &mut self.job;
        job.status = next.status();
        job.scheduled_at = next.due(now).unwrap_or(job.scheduled_at);
        job.completed_at = job.status.is_terminal().then_some(now);
        job.error = Some(error);
        job.lease_until = None;
    }
}

const fn written(holds: bool) -> AttemptWrite {
    if holds { AttemptWrite::Done } else { AttemptWrite::LeaseLost }
}
