//! How a worker ends an attempt: running → completed, failed, dead, or pending again.

use std::time::Duration;

use super::table::Table;
use crate::queue::{AttemptFailure, NewJob, Outcome, Receipt, Recorded, Status, StoreError, Timestamp, snooze_delay};

impl Table {
    /// running → completed; `follow_ups` come into being with it.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where a follow-up is; nothing has changed then.
    pub fn complete(
        &mut self,
        receipt: Receipt,
        result: String,
        follow_ups: Vec<NewJob>,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        let Some(row) = self.held(&receipt.lease) else { return Ok(Recorded::LeaseLost) };
        // The job is done before its follow-ups are added, so that one of them may take over its key.
        let before = (!follow_ups.is_empty()).then(|| row.clone());
        let job = receipt.lease.job;
        self.change(job, |row| {
            row.job.status = Status::Completed;
            row.job.completed_at = Some(now);
            row.job.attempts = receipt.attempt;
            row.job.result = Some(result);
            row.job.error = None;
            row.job.lease_until = None;
            row.close(receipt, Outcome::Completed, None, now);
        });
        let added = self.enqueue(follow_ups, now);
        if let (Err(_), Some(before)) = (&added, before) {
            self.change(job, |row| *row = before);
        }
        added.map(|_| Recorded::Yes)
    }

    /// running → failed, or dead.
    pub fn fail(&mut self, receipt: Receipt, failure: AttemptFailure, now: Timestamp) -> Recorded {
        let AttemptFailure { outcome, error, next } = failure;
        let lease = receipt.lease.clone();
        let holds = self.change_held(&lease, |row| {
            row.job.attempts = receipt.attempt;
            row.close(receipt, outcome, Some(error.clone()), now);
            row.settle(error, next, now);
        });
        recorded(holds)
    }

    /// running → pending, due again after `delay`; not counted as an attempt.
    pub fn snooze(&mut self, receipt: Receipt, delay: Duration, now: Timestamp) -> Recorded {
        let lease = receipt.lease.clone();
        let holds = self.change_held(&lease, |row| {
            row.job.status = Status::Pending;
            row.job.scheduled_at = now.after(snooze_delay(delay));
            row.job.lease_until = None;
            row.close(receipt, Outcome::Snoozed, None, now);
        });
        recorded(holds)
    }

    /// running → pending at the same place in the queue.
    pub fn give_back(&mut self, receipt: Receipt, now: Timestamp) -> Recorded {
        let lease = receipt.lease.clone();
        let holds = self.change_held(&lease, |row| {
            row.job.status = Status::Pending;
            row.job.lease_until = None;
            row.close(receipt, Outcome::GivenBack, None, now);
        });
        recorded(holds)
    }
}

impl super::table::Row {
    /// Moves a job whose attempt failed; the ledger is the caller's.
    pub(super) fn settle(&mut self, error: String, next: crate::queue::Next, now: Timestamp) {
        let job = &mut self.job;
        job.status = next.status();
        job.scheduled_at = next.due(now).unwrap_or(job.scheduled_at);
        job.completed_at = job.status.is_terminal().then_some(now);
        job.error = Some(error);
        job.lease_until = None;
    }
}

const fn recorded(holds: bool) -> Recorded {
    if holds { Recorded::Yes } else { Recorded::LeaseLost }
}
