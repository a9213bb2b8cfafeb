//! The interface of the queue's backends: a verb for each state change of a job, and verbs to read and to maintain.
//!
//! Rules for every backend (checked by the suite in `tests/store/`):
//! - A verb that writes returns only after its transaction is durable, as configured.
//! - Every write of a worker carries a [`Lease`]. A stale lease changes nothing, and the result says so.
//! - Callers pass durations; the backend turns them into instants by its own clock.
//! - Text comes back byte for byte.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    AttemptFailure, AttemptRecord, AttemptWrite, BulkResult, Cancelled, ChangeCursor, Claim, Claims, Counts, Daemon,
    Enqueued, Filter, Id, Job, JobRef, Lease, LogLine, NewJob, ParkedClaim, Progress, Pruned, Receipt, Rescued,
    Resolved, Retention, Retried, RetryPolicies, Selected, Selection, StaleLease, Status, StoreError, WorkerName,
};

/// A queue of jobs that outlives the process.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds jobs, all or none. Results are in the same order.
    /// A job whose key is held by an unfinished job is not added; its result names the holder.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError>;

    /// Leases due jobs of all wanted types: by priority (higher first), then `scheduled_at`, then insertion. [`Claim`] says how
    /// many. The cost depends on the jobs taken, not on jobs that are finished, due later or of other types.
    async fn claim(&self, claim: Claim) -> Result<Claims, StoreError>;

    /// Parks a claim until jobs are added through this store. Replaces the previous one. A backend may ignore it, so callers
    /// must not rely on a reply.
    fn park_claim(&self, claim: ParkedClaim) {
        _ = claim;
    }

    /// Extends leases and returns those that are no longer valid, with the reason.
    async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Result<Vec<StaleLease>, StoreError>;

    /// Returns those of `leases` that are no longer valid, without writing.
    async fn stale(&self, leases: Vec<Lease>) -> Result<Vec<StaleLease>, StoreError>;

    /// Writes the log lines and progress of running attempts. Entries with a stale lease are dropped.
    async fn save_progress(&self, progress: Vec<Progress>) -> Result<(), StoreError>;

    /// running → completed. Adds `follow_ups` in the same transaction, except those whose key is held by then.
    async fn complete(
        &self,
        receipt: Receipt,
        result: String,
        follow_ups: Vec<NewJob>,
    ) -> Result<AttemptWrite, StoreError>;

    /// running → failed, or dead.
    async fn fail(&self, receipt: Receipt, failure: AttemptFailure) -> Result<AttemptWrite, StoreError>;

    /// running → pending, due after `delay`. The attempt does not count.
    async fn snooze(&self, receipt: Receipt, delay: Duration) -> Result<AttemptWrite, StoreError>;

    /// running → pending at the same position in the queue, with the outcome `given_back`. For an attempt that a shutdown
    /// interrupted.
    async fn give_back(&self, receipt: Receipt) -> Result<AttemptWrite, StoreError>;

    /// running → pending at the same position in the queue, without an attempt. For jobs whose guest never started.
    async fn release(&self, leases: Vec<Lease>) -> Result<(), StoreError>;

    /// pending, failed or running → cancelled. Ends a running attempt; its lease is stale from then on.
    async fn cancel(&self, id: &Id) -> Result<Cancelled, StoreError>;

    /// failed, dead or cancelled → pending, due now, with at least one more attempt. `policies` have the limit for
    /// jobs without one of their own.
    async fn retry(&self, id: &Id, policies: Arc<RetryPolicies>) -> Result<Retried, StoreError>;

    /// The jobs that match `selection` now, for a bulk verb. Reads one snapshot.
    async fn select(&self, selection: Selection) -> Result<Selected, StoreError>;

    /// [`cancel`](Self::cancel) for every job of `jobs` that is still in one of the states `from`, in one transaction.
    async fn cancel_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<BulkResult, StoreError>;

    /// [`retry`](Self::retry) for every job of `jobs` that is still in one of the states `from`, in one transaction.
    async fn retry_many(
        &self,
        jobs: Vec<JobRef>,
        from: Vec<Status>,
        policies: Arc<RetryPolicies>,
    ) -> Result<BulkResult, StoreError>;

    /// Registers a worker before its first claim, so that its death can be proved, if the backend supports that.
    async fn register(&self, worker: &WorkerName) -> Result<(), StoreError> {
        _ = worker;
        Ok(())
    }

    /// Notes that the guest of this lease starts now. Cheap, without a transaction; survives the process, not the machine.
    /// If a registered worker dies, guests without a note count as not started.
    fn started(&self, lease: &Lease) {
        _ = lease;
    }

    /// Drops the note of [`started`](Self::started): the end of the attempt was written, or its lease is stale. Must not be
    /// called if the end could not be written, because the note then proves that the guest had started.
    fn ended(&self, lease: &Lease) {
        _ = lease;
    }

    /// Ends at most `limit` lost attempts: those whose worker is proved dead and, with `max_lease`, those whose lease has expired
    /// or ends later than `max_lease` from now (no daemon grants such a lease: the clock was set back). They fail with the
    /// outcome `lost`. If the guest is proved not to have started, the job is pending again at its position, and the attempt
    /// does not count.
    async fn rescue(
        &self,
        policies: Arc<RetryPolicies>,
        max_lease: Option<Duration>,
        limit: usize,
    ) -> Result<Vec<Rescued>, StoreError>;

    /// Deletes at most `limit` finished jobs that are older than their retention, with their attempts and logs. A call may stop
    /// early, so that other calls don't wait long behind it. The next one continues from there.
    async fn prune(&self, retention: Retention, limit: usize) -> Result<Pruned, StoreError>;

    /// The jobs that [`prune`](Self::prune) would delete now without a limit.
    async fn prunable(&self, retention: Retention) -> Result<Selected, StoreError>;

    /// Waits for a write after `since`, by any process including this one. Returns the cursor for the next call. Returns at once
    /// if there was such a write already, and for [`ChangeCursor::default`]. Dropping the future misses nothing. A backend that
    /// gets events of writes also polls every `max_poll`; one that doesn't, every `poll`.
    ///
    /// # Errors
    /// Only those that [are fatal](StoreError::is_fatal), and [`StoreError::Closed`].
    async fn change(&self, since: ChangeCursor, poll: Duration, max_poll: Duration)
    -> Result<ChangeCursor, StoreError>;

    /// The unfinished job that holds `key`, unless it is the one with lease `except`.
    async fn holder(&self, key: &str, except: Option<Lease>) -> Result<Option<Id>, StoreError>;

    /// The job whose id this is or, from [`Resolved::MIN_PREFIX`] characters on, the only job whose id begins with it.
    async fn resolve(&self, id: &Id) -> Result<Resolved, StoreError>;

    /// One job.
    async fn find(&self, id: &Id) -> Result<Option<Job>, StoreError>;

    /// Jobs, newest first.
    async fn list(&self, filter: Filter) -> Result<Vec<Job>, StoreError>;

    /// The last 100 attempts of a job that have ended, oldest first.
    async fn attempts(&self, id: &Id) -> Result<Vec<AttemptRecord>, StoreError>;

    /// One job and its [`attempts`](Self::attempts), from one snapshot.
    async fn history(&self, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>, StoreError>;

    /// The log lines of a job's attempts, in order, after the first `skip`.
    async fn logs(&self, id: &Id, skip: usize) -> Result<Vec<LogLine>, StoreError>;

    /// The number of jobs in each state.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// The number of waiting jobs that are not due and will be `within` this time. Reads every waiting job.
    async fn due_within(&self, within: Duration) -> Result<u64, StoreError>;

    /// A warning about the database for the operator, if there is one. Cheap.
    ///
    /// # Errors
    /// Fatal ones ([`StoreError::is_fatal`]).
    async fn health(&self) -> Result<Option<String>, StoreError>;

    /// Writes what a daemon is and serves, for the command line to read. Replaces its previous report.
    async fn announce(&self, daemon: Daemon) -> Result<(), StoreError>;

    /// Undoes [`announce`](Self::announce) and [`register`](Self::register).
    async fn retire(&self, worker: &WorkerName) -> Result<(), StoreError>;

    /// The latest reports of the daemons on this queue.
    async fn daemons(&self) -> Result<Vec<Daemon>, StoreError>;

    /// Finishes pending calls and closes the database. Later calls fail.
    async fn close(&self);
}
