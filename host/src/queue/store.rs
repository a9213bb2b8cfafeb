//! The seam between the queue and where it is kept: one verb for each move of a job, and a few to look and to tidy.
//!
//! Rules that every backend keeps (`tests/store/` is the suite that holds them to it):
//! - A verb that writes answers only after its transaction is durable as configured.
//! - Every write of a worker names a [`Lease`]; a stale one changes nothing and says so.
//! - Callers pass durations; the backend turns them into instants by its own clock.
//! - Text comes back byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::{Digest, Id, JobType, Lease, NewJob, Next, Outcome, Policies, Policy, Priority, Status, Timestamp};

/// A queue of jobs that outlives the process.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds jobs, all or none, and answers in their order.
    /// A job whose key an unfinished one holds is not added: the answer names the holder.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError>;

    /// Leases due jobs: within a type by priority (higher first), then `scheduled_at`, then insertion; across types by the same order.
    /// The cost depends on the jobs taken, not on how many are finished, due later, or of types that are not wanted.
    async fn claim(&self, claim: Claim) -> Result<Claims, StoreError>;

    /// Extends leases and returns those that are no longer valid, with the reason.
    async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Result<Vec<Stale>, StoreError>;

    /// Returns those of `leases` that are no longer valid, without writing.
    async fn stale(&self, leases: Vec<Lease>) -> Result<Vec<Stale>, StoreError>;

    /// Writes what running attempts have logged and how far they are. Entries with a stale lease are dropped.
    async fn record(&self, progress: Vec<Progress>) -> Result<(), StoreError>;

    /// running → completed; `follow_ups` come into being in the same transaction (one whose key is held by now is left out).
    async fn complete(&self, receipt: Receipt, result: String, follow_ups: Vec<NewJob>)
    -> Result<Recorded, StoreError>;

    /// running → failed, or dead.
    async fn fail(&self, receipt: Receipt, failure: Failure) -> Result<Recorded, StoreError>;

    /// running → pending, due again after `delay`; not counted as an attempt.
    async fn snooze(&self, receipt: Receipt, delay: Duration) -> Result<Recorded, StoreError>;

    /// running → pending at the same place in the queue; the ledger says `given_back`. For an attempt that shutdown interrupted.
    async fn give_back(&self, receipt: Receipt) -> Result<Recorded, StoreError>;

    /// running → pending at the same place in the queue and without a trace but the token. For jobs whose guest never started.
    async fn release(&self, leases: Vec<Lease>) -> Result<(), StoreError>;

    /// pending, failed or running → cancelled. Ends a running attempt in the ledger; its lease is stale from here on.
    async fn cancel(&self, id: &Id) -> Result<Cancelled, StoreError>;

    /// failed, dead or cancelled → pending, due now, with at least one more attempt. `policies` tell the limit of jobs that have none of their own.
    async fn retry(&self, id: &Id, policies: Arc<Policies>) -> Result<Retried, StoreError>;

    /// Which jobs `selection` names at this moment, for a verb that takes many. One snapshot: what comes later is not among them.
    async fn select(&self, selection: Selection) -> Result<Selected, StoreError>;

    /// [`cancel`](Self::cancel) for every job of `jobs` that still stands in one of the states `from`, in one transaction.
    async fn cancel_many(&self, jobs: Vec<i64>, from: Vec<Status>) -> Result<Moved, StoreError>;

    /// [`retry`](Self::retry) for every job of `jobs` that still stands in one of the states `from`, in one transaction.
    async fn retry_many(&self, jobs: Vec<i64>, from: Vec<Status>, policies: Arc<Policies>)
    -> Result<Moved, StoreError>;

    /// Fails at most `limit` attempts whose lease has expired (`lost`), oldest first.
    async fn rescue(&self, policies: Arc<Policies>, limit: usize) -> Result<Vec<Rescued>, StoreError>;

    /// Deletes at most `limit` finished jobs that are older than their retention, with their ledger and logs.
    async fn prune(&self, retention: Retention, limit: usize) -> Result<Pruned, StoreError>;

    /// What [`prune`](Self::prune) would delete at this moment, had it no limit.
    async fn prunable(&self, retention: Retention) -> Result<Selected, StoreError>;

    /// Whether another process has written since the last call. Costs microseconds, so it may be asked often.
    async fn changed_elsewhere(&self) -> Result<bool, StoreError>;

    /// The unfinished job that holds `key`, leaving out the one with lease `except`.
    async fn holder(&self, key: &str, except: Option<Lease>) -> Result<Option<Id>, StoreError>;

    /// One job.
    async fn find(&self, id: &Id) -> Result<Option<Job>, StoreError>;

    /// Jobs, newest first.
    async fn list(&self, filter: Filter) -> Result<Vec<Job>, StoreError>;

    /// The last 100 attempts of a job that have ended, oldest first.
    async fn attempts(&self, id: &Id) -> Result<Vec<AttemptRecord>, StoreError>;

    /// What a job's attempts logged, in order, after the first `skip` lines.
    async fn logs(&self, id: &Id, skip: usize) -> Result<Vec<LogLine>, StoreError>;

    /// How many jobs stand in each state.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// What an operator should know about the place the queue is kept in, if anything. Cheap.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when what was opened is no longer there.
    async fn health(&self) -> Result<Option<String>, StoreError>;

    /// Writes what a daemon is and serves, for the command line to read; replaces its earlier report.
    async fn announce(&self, daemon: Daemon) -> Result<(), StoreError>;

    /// Takes back what [`announce`](Self::announce) wrote.
    async fn retire(&self, worker: &str) -> Result<(), StoreError>;

    /// What the daemons on this queue last announced.
    async fn daemons(&self) -> Result<Vec<Daemon>, StoreError>;
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
    /// The file or its directory cannot be written.
    #[error("the database cannot be written: {0}")]
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
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same call may succeed later without anything changing but time and disk space.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::Full(_) | Self::ReadOnly(_) | Self::Failed(_))
    }
}

/// The answer to one enqueued job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It was added under this id.
    Added(Id),
    /// An unfinished job with this id holds its key; nothing was added.
    Held(Id),
}

impl Enqueued {
    /// The id of the job that is in the queue now.
    pub const fn id(&self) -> &Id {
        match self {
            Self::Added(id) | Self::Held(id) => id,
        }
    }
}

/// What a worker wants to claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The types it can serve now, each with the most it can take.
    pub wants: Vec<Want>,
    /// The most it can take of all types together.
    pub limit: usize,
    /// How long the leases hold.
    pub lease: Duration,
    /// Its name, written into the rows.
    pub worker: Arc<str>,
}

/// One type a worker can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The type.
    pub job_type: JobType,
    /// The most jobs of it.
    pub most: usize,
}

/// The answer to a claim.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The leased jobs in the order in which they shall start.
    pub jobs: Vec<Claimed>,
    /// When the next job of the wanted types is due, as a delay from now; `None` where none waits or more are due at once.
    pub next_due: Option<Duration>,
}

/// A leased job.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The right to write about it.
    pub lease: Lease,
    /// Its id.
    pub id: Id,
    /// Its type.
    pub job_type: JobType,
    /// What the handler is given; `Err` where a foreign writer stored bytes that are no UTF-8.
    pub payload: Result<String, std::str::Utf8Error>,
    /// Number of the attempt that this lease is for; the first is 1.
    pub attempt: u32,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Its own timeout.
    pub timeout: Option<Duration>,
}

/// A lease that no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The lease.
    pub lease: Lease,
    /// Whether it was ended by a cancel; otherwise another worker took over or the job is gone.
    pub cancelled: bool,
}

/// What is known about one attempt when it ends.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Whose attempt.
    pub lease: Lease,
    /// Its number; the first is 1.
    pub attempt: u32,
    /// How long ago the guest started.
    pub duration: Duration,
    /// Fuel burnt; `None` where it is not counted.
    pub fuel: Option<u64>,
    /// Peak of all its memories and tables together, in bytes; `None` where no guest ran.
    pub peak_memory: Option<u64>,
    /// The `.wasm` that ran; `None` where none did.
    pub digest: Option<Digest>,
    /// What it logged since the last [`Store::record`].
    pub lines: Vec<LogLine>,
}

impl Receipt {
    /// For an attempt that ran so long, of which nothing else is known.
    pub fn of(job: &Claimed, duration: Duration) -> Self {
        Self {
            lease: job.lease,
            attempt: job.attempt,
            duration,
            fuel: None,
            peak_memory: None,
            digest: None,
            lines: Vec::new(),
        }
    }
}

/// What a running attempt has to say so far.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Whose attempt.
    pub lease: Lease,
    /// What it logged since the last time.
    pub lines: Vec<LogLine>,
    /// The latest progress report, where there is a new one: percent and a few words.
    pub progress: Option<(u8, String)>,
}

/// How an attempt failed and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the ledger records.
    pub outcome: Outcome,
    /// What went wrong, for people.
    pub error: String,
    /// Another attempt, or the dead letter.
    pub next: Next,
}

/// The answer to a worker's last write about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It stands.
    Yes,
    /// The lease is stale: the job was cancelled, rescued or deleted meanwhile, and nothing was written.
    LeaseLost,
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled now; it was in this state.
    From(Status),
    /// The state forbids it.
    Forbidden(Status),
    /// There is no such job.
    NotFound,
}

/// The answer to a retry by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retried {
    /// It is pending now; it was in this state.
    From(Status),
    /// The state forbids it.
    Forbidden(Status),
    /// Another unfinished job has taken its key.
    KeyTaken(Id),
    /// There is no such job.
    NotFound,
}

/// Which jobs a verb for many takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// In one of these states.
    pub states: Vec<Status>,
    /// Only of this type.
    pub job_type: Option<String>,
    /// Only those that ended, or where they have not were enqueued, at least so long ago.
    pub older_than: Option<Duration>,
    /// The same as an instant: only those before it.
    pub before: Option<Timestamp>,
    /// The most to take, those that ended or are due first before the others.
    pub limit: usize,
}

/// The jobs that a selection named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Their places in the order of insertion, which take an eighth of the room of their ids.
    pub jobs: Vec<i64>,
    /// The ids of the first few, for people.
    pub first: Vec<Id>,
}

/// The answer of a verb that took many jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Jobs that it moved.
    pub moved: usize,
    /// Jobs that had left the asked states or were deleted before it came to them.
    pub gone: usize,
    /// Jobs whose key another unfinished job holds.
    pub key_taken: usize,
}

/// An attempt that was given up for lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The job.
    pub id: Id,
    /// Its type.
    pub job_type: String,
    /// The worker that held it.
    pub worker: Option<String>,
    /// Where the job stands now.
    pub status: Status,
}

/// How long finished jobs are kept; `None` keeps them for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Completed jobs.
    pub completed: Option<Duration>,
    /// Cancelled jobs.
    pub cancelled: Option<Duration>,
    /// Dead jobs.
    pub dead: Option<Duration>,
}

/// What a prune did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs deleted.
    pub deleted: usize,
    /// Whether more of them may be waiting.
    pub more: bool,
}

/// Which jobs to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only in this state.
    pub status: Option<Status>,
    /// Only of this type.
    pub job_type: Option<String>,
    /// The most to return.
    pub limit: usize,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Place in the order of insertion.
    pub seq: i64,
    /// Public id.
    pub id: Id,
    /// Type, as it stands there.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// State.
    pub status: Status,
    /// Higher is claimed first.
    pub priority: Priority,
    /// Attempts that counted.
    pub attempts: u32,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Its own timeout.
    pub timeout: Option<Duration>,
    /// When it may run.
    pub scheduled_at: Timestamp,
    /// Start of the latest attempt.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// What its handler returned.
    pub result: Option<String>,
    /// What went wrong in the latest failed attempt.
    pub error: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The key it holds or held.
    pub key: Option<String>,
    /// Latest fencing token.
    pub lease: i64,
    /// Until when the lease holds.
    pub lease_until: Option<Timestamp>,
    /// Latest worker.
    pub worker: Option<String>,
    /// Latest progress report of the running attempt: percent and a few words.
    pub progress: Option<(u8, String)>,
}

/// An entry of the ledger: one attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Number of the attempt.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong.
    pub error: Option<String>,
    /// Its fencing token.
    pub lease: i64,
    /// When the guest started.
    pub started_at: Timestamp,
    /// How long it ran.
    pub duration: Duration,
    /// Fuel burnt; `None` where it was not counted.
    pub fuel: Option<u64>,
    /// Peak memory in bytes; `None` where it is not known.
    pub peak_memory: Option<u64>,
    /// The `.wasm` that ran.
    pub digest: Option<Digest>,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// The `log` import.
    Log,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl LogSource {
    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// The source a word names.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Log, Self::Stdout, Self::Stderr].into_iter().find(|source| source.as_str() == word)
    }
}

/// One line that an attempt wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Number of the attempt; the store fills it in when it reads.
    pub attempt: u32,
    /// Fencing token of the attempt; the store fills it in when it reads.
    pub lease: i64,
    /// When it was written.
    pub time: Timestamp,
    /// Where it came from.
    pub source: LogSource,
    /// `debug`, `info`, `warn` or `error`; `None` for stdout and stderr.
    pub level: Option<&'static str>,
    /// The text.
    pub message: String,
}

/// How many jobs stand in each state; a state without jobs is absent.
pub type Counts = BTreeMap<Status, u64>;

/// What a daemon tells about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its name, as it stands in the `worker` column.
    pub worker: String,
    /// Process id.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// When it wrote this; the store fills it in.
    pub seen_at: Timestamp,
    /// Attempts it can run at once.
    pub slots: u32,
    /// Attempts it was running.
    pub busy: u32,
    /// The types it knows.
    pub plugins: Vec<PluginReport>,
}

/// What a daemon tells about the plugin of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginReport {
    /// The type.
    pub job_type: String,
    /// File name in the plugin directory.
    pub file: String,
    /// `compiling`, `serving`, `broken` or `missing`.
    pub state: String,
    /// SHA-256 of the version that serves, in hex.
    pub digest: Option<String>,
    /// Why the newest file does not load.
    pub reason: Option<String>,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// Attempts that ran on it in this daemon.
    pub attempts: u64,
}

/// The limit of attempts that holds for a job when somebody retries it by hand: its own or its type's, and at least one more.
pub(super) fn limit_for_retry(attempts: u32, own: Option<u32>, policy: &Policy) -> Option<u32> {
    let one_more = attempts.saturating_add(1);
    match own {
        Some(max) => Some(max.max(one_more)),
        None if policy.max_attempts >= one_more => None,
        None => Some(one_more),
    }
}
