//! The seam between the queue and where it is kept: one verb for each move of a job, and a few to look and to tidy.
//!
//! Rules that every backend keeps (`tests/store/` is the suite that holds them to it):
//! - A verb that writes answers only after its transaction is durable as configured.
//! - Every write of a worker names a [`Lease`]; a stale one changes nothing and says so.
//! - Callers pass durations; the backend turns them into instants by its own clock.
//! - Text comes back byte for byte.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::{
    AttemptFailure, AttemptRecord, BulkResult, Cancelled, ChangeCursor, Claim, Claims, Counts, Daemon, Deleted, Enqueued,
    Filter, Id, Job, JobRef, Lease, LogLine, NewJob, ParkedClaim, Progress, Pruned, Receipt, Recorded, Rescued,
    Resolved, Retention, Retried, RetryPolicies, Selected, Selection, StaleLease, Status, WorkerName,
};

/// A queue of jobs that outlives the process.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds jobs, all or none, and answers in their order.
    /// A job whose key an unfinished one holds is not added: the answer names the holder.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError>;

    /// Leases due jobs: by priority (higher first), then `scheduled_at`, then insertion, over all wanted types. What of them it
    /// takes is told by [`Claim`].
    /// The cost depends on the jobs taken, not on how many are finished, due later, or of types that are not wanted.
    async fn claim(&self, claim: Claim) -> Result<Claims, StoreError>;

    /// Leaves a claim for the next jobs that are added through this store; it replaces the one before. A store that cannot do
    /// that forgets it, so nobody may count on an answer.
    fn park_claim(&self, claim: ParkedClaim) {
        _ = claim;
    }

    /// Extends leases and returns those that are no longer valid, with the reason.
    async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Result<Vec<StaleLease>, StoreError>;

    /// Returns those of `leases` that are no longer valid, without writing.
    async fn stale(&self, leases: Vec<Lease>) -> Result<Vec<StaleLease>, StoreError>;

    /// Writes what running attempts have logged and how far they are. Entries with a stale lease are dropped.
    async fn record(&self, progress: Vec<Progress>) -> Result<(), StoreError>;

    /// running → completed; `follow_ups` come into being in the same transaction (one whose key is held by now is left out).
    async fn complete(&self, receipt: Receipt, result: String, follow_ups: Vec<NewJob>)
    -> Result<Recorded, StoreError>;

    /// running → failed, or dead.
    async fn fail(&self, receipt: Receipt, failure: AttemptFailure) -> Result<Recorded, StoreError>;

    /// running → pending, due again after `delay`; not counted as an attempt.
    async fn snooze(&self, receipt: Receipt, delay: Duration) -> Result<Recorded, StoreError>;

    /// running → pending at the same place in the queue; the ledger says `given_back`. For an attempt that shutdown interrupted.
    async fn give_back(&self, receipt: Receipt) -> Result<Recorded, StoreError>;

    /// running → pending at the same place in the queue and without a trace but the token. For jobs whose guest never started.
    async fn release(&self, leases: Vec<Lease>) -> Result<(), StoreError>;

    /// pending, failed or running → cancelled. Ends a running attempt in the ledger; its lease is stale from here on.
    async fn cancel(&self, id: &Id) -> Result<Cancelled, StoreError>;

    /// failed, dead or cancelled → pending, due now, with at least one more attempt. `policies` tell the limit of jobs that have none of their own.
    async fn retry(&self, id: &Id, policies: Arc<RetryPolicies>) -> Result<Retried, StoreError>;

    /// Which jobs `selection` names at this moment, for a verb that takes many. One snapshot: what comes later is not among them.
    async fn select(&self, selection: Selection) -> Result<Selected, StoreError>;

    /// [`cancel`](Self::cancel) for every job of `jobs` that still stands in one of the states `from`, in one transaction.
    async fn cancel_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<BulkResult, StoreError>;

    /// Deletes every job of `jobs` that is in one of the states `from`, with its attempts and logs, in one transaction. Running
    /// jobs are never deleted.
    async fn delete_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<Deleted, StoreError>;

    /// [`retry`](Self::retry) for every job of `jobs` that still stands in one of the states `from`, in one transaction.
    async fn retry_many(
        &self,
        jobs: Vec<JobRef>,
        from: Vec<Status>,
        policies: Arc<RetryPolicies>,
    ) -> Result<BulkResult, StoreError>;

    /// Registers a worker before its first claim: from here on its death can be proved, where the backend can do that.
    async fn register(&self, worker: &WorkerName) -> Result<(), StoreError> {
        _ = worker;
        Ok(())
    }

    /// Notes that the guest of this lease starts now. Cheap and without a transaction; outlives the process, not the machine.
    /// A guest of a registered worker that starts without it counts as not started if the worker dies.
    fn started(&self, lease: &Lease) {
        _ = lease;
    }

    /// The end of the attempt is on record, or its lease no longer holds: what [`started`](Self::started) noted is no longer
    /// needed. Not to be called for an attempt whose end could not be recorded: it is for the note to tell that it was one.
    fn ended(&self, lease: &Lease) {
        _ = lease;
    }

    /// Ends at most `limit` attempts that nobody will end any more: those whose worker is proved dead and, with `max_lease`, those
    /// whose lease has expired, or lies further ahead than `max_lease`, which no daemon grants (the clock was set back). They
    /// failed (`lost`); where the guest is proved not to have started, the job is pending again at its place and nothing is
    /// counted.
    async fn rescue(
        &self,
        policies: Arc<RetryPolicies>,
        max_lease: Option<Duration>,
        limit: usize,
    ) -> Result<Vec<Rescued>, StoreError>;

    /// Deletes at most `limit` finished jobs that are older than their retention, with their ledger and logs. A call may stop
    /// before that, so that nobody waits for long behind it; the next one goes on from there.
    async fn prune(&self, retention: Retention, limit: usize) -> Result<Pruned, StoreError>;

    /// What [`prune`](Self::prune) would delete at this moment, had it no limit.
    async fn prunable(&self, retention: Retention) -> Result<Selected, StoreError>;

    /// Returns once somebody, this process included, has written after `since`, and with what to ask for next; at once where that
    /// has happened already, and for [`ChangeCursor::default`]. Whoever gives up waiting misses nothing. A backend that is told
    /// of changes looks for itself every `net`, one that is not every `pace`.
    ///
    /// # Errors
    /// Only those that [are fatal](StoreError::is_fatal), and [`StoreError::Closed`].
    async fn change(&self, since: ChangeCursor, pace: Duration, net: Duration) -> Result<ChangeCursor, StoreError>;

    /// The unfinished job that holds `key`, leaving out the one with lease `except`.
    async fn holder(&self, key: &str, except: Option<Lease>) -> Result<Option<Id>, StoreError>;

    /// The job whose id this is or, from [`Resolved::MIN_PREFIX`] characters on, the only job whose id begins with it.
    async fn resolve(&self, id: &Id) -> Result<Resolved, StoreError>;

    /// One job.
    async fn find(&self, id: &Id) -> Result<Option<Job>, StoreError>;

    /// Jobs, newest first.
    async fn list(&self, filter: Filter) -> Result<Vec<Job>, StoreError>;

    /// The last 100 attempts of a job that have ended, oldest first.
    async fn attempts(&self, id: &Id) -> Result<Vec<AttemptRecord>, StoreError>;

    /// One job with its [`attempts`](Self::attempts), both as of the same moment.
    async fn history(&self, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>, StoreError>;

    /// What a job's attempts logged, in order, after the first `skip` lines.
    async fn logs(&self, id: &Id, skip: usize) -> Result<Vec<LogLine>, StoreError>;

    /// How many jobs stand in each state.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// How many waiting jobs are not due and come due `within` this time. For the rare case that somebody asks: looks at every
    /// waiting job.
    async fn due_within(&self, within: Duration) -> Result<u64, StoreError>;

    /// What an operator should know about the place the queue is kept in, if anything. Cheap.
    ///
    /// # Errors
    /// Those that [are fatal](StoreError::is_fatal).
    async fn health(&self) -> Result<Option<String>, StoreError>;

    /// Writes what a daemon is and serves, for the command line to read; replaces its earlier report.
    async fn announce(&self, daemon: Daemon) -> Result<(), StoreError>;

    /// Takes back what [`announce`](Self::announce) and [`register`](Self::register) wrote.
    async fn retire(&self, worker: &WorkerName) -> Result<(), StoreError>;

    /// What the daemons on this queue last announced.
    async fn daemons(&self) -> Result<Vec<Daemon>, StoreError>;

    /// Finishes what was asked for and lets go of the place that the queue is kept in. Every later call is refused.
    async fn close(&self);
}

/// Why a verb failed. Nothing was written.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// Another process holds the database; asking again may help.
    #[error("the database is locked by another process")]
    Busy,
    /// No space is left; asking again helps once there is.
    #[error("no space is left for the database: {0}")]
    Full(String),
    /// The place that the queue is kept in cannot be written.
    #[error("the queue cannot be written: {0}")]
    ReadOnly(String),
    /// The rows given break a rule of the table; asking again never helps.
    #[error("the table refuses it: {0}")]
    Refused(String),
    /// The disk, the file or SQLite itself failed.
    #[error("the database failed: {0}")]
    Failed(String),
    /// Somebody deleted or replaced the database while it was open.
    #[error("`{0}` was deleted or replaced while it was open; what is written now is lost")]
    Gone(String),
    /// What is in the database contradicts itself: the disk, or somebody who writes to the file and is not SQLite.
    #[error("the database is damaged: {0}\nhint: stop every program that uses it, and restore a backup")]
    Corrupt(String),
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same call may succeed later without anything changing but time and disk space.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::Full(_) | Self::ReadOnly(_) | Self::Failed(_))
    }

    /// Whether nothing that is written from here on will last, so that a daemon must end.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Corrupt(_))
    }
}
