//! Arguments and results of the store's verbs.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Digest, Id, JobRef, JobType, Lease, LogLine, Next, Outcome, Status, Timestamp, WorkerName};

/// The result for one enqueued job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It was added under this id.
    Added(Id),
    /// An unfinished job with this id holds its key. Nothing was added.
    Held(Id),
}

impl Enqueued {
    /// The id of the job in the queue.
    pub const fn id(&self) -> &Id {
        match self {
            Self::Added(id) | Self::Held(id) => id,
        }
    }
}

/// What a worker wants to claim.
///
/// Jobs are taken in the order of claims. Each takes one of the free `slots` if there is one and its type may have another.
/// Otherwise it is claimed ahead of a free slot, if its type allows that. The claim ends when no type with a due job can take
/// another one.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The types that the worker can serve now.
    pub wants: Vec<Want>,
    /// Free slots, shared by all wanted types.
    pub slots: usize,
    /// How long the leases hold.
    pub lease: Duration,
    /// The worker, for the `worker` column.
    pub worker: WorkerName,
}

/// A type that a worker can serve, and how many of its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The type.
    pub job_type: JobType,
    /// The most jobs of it that may take a free slot.
    pub slots: usize,
    /// How many more of it may be claimed ahead of a free slot.
    pub ahead: usize,
}

impl Want {
    /// Whether a job of this type can be taken with `free` slots.
    pub(super) fn is_open(&self, free: usize) -> bool {
        self.ahead > 0 || (self.slots > 0 && free > 0)
    }

    /// The most jobs of this type that can be taken with `free` slots.
    pub(super) fn most(&self, free: usize) -> usize {
        self.slots.min(free).saturating_add(self.ahead)
    }

    /// Counts a job that is taken: in one of the `free` slots if possible, ahead of them otherwise.
    pub(super) fn take_one(&mut self, free: &mut usize) {
        if self.slots > 0 && *free > 0 {
            self.slots -= 1;
            *free -= 1;
        } else {
            self.ahead = self.ahead.saturating_sub(1);
        }
    }
}

/// The result of a claim.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The leased jobs, in the order to start them.
    pub jobs: Vec<Claimed>,
    /// The delay until the next job is due, among the wanted types that have no due job left and could take another one;
    /// `None` if none is waiting.
    pub next_due: Option<Duration>,
}

/// A leased job.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The lease.
    pub lease: Lease,
    /// Its id.
    pub id: Id,
    /// Its type.
    pub job_type: JobType,
    /// The input of the handler; `Err` if a foreign program stored bytes that are not UTF-8.
    pub payload: Result<String, std::str::Utf8Error>,
    /// Number of the attempt that this lease is for; the first is 1.
    pub attempt: u32,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Its own timeout.
    pub timeout: Option<Duration>,
}

/// A lease that is no longer valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleLease {
    /// The lease.
    pub lease: Lease,
    /// Whether the job was cancelled. Otherwise another worker took over, or the job was deleted.
    pub cancelled: bool,
}

/// The facts of one attempt when it ends.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Its lease.
    pub lease: Lease,
    /// Its number; the first is 1.
    pub attempt: u32,
    /// How long ago the guest started.
    pub duration: Duration,
    /// Fuel used; `None` if it is not counted.
    pub fuel: Option<u64>,
    /// Peak of all its memories and tables together, in bytes; `None` if no guest ran.
    pub peak_memory: Option<u64>,
    /// The `.wasm` that ran; `None` if none did.
    pub digest: Option<Digest>,
    /// Log lines since the last [`Store::save_progress`](super::Store::save_progress).
    pub lines: Vec<LogLine>,
}

impl Receipt {
    /// For an attempt of which only the duration is known.
    pub fn of(job: &Claimed, duration: Duration) -> Self {
        Self {
            lease: job.lease.clone(),
            attempt: job.attempt,
            duration,
            fuel: None,
            peak_memory: None,
            digest: None,
            lines: Vec::new(),
        }
    }
}

/// New log lines and progress of a running attempt.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The attempt.
    pub lease: Lease,
    /// New log lines.
    pub lines: Vec<LogLine>,
    /// The latest progress report, if there is a new one: percent and a message.
    pub progress: Option<(u8, String)>,
}

/// How an attempt failed, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailure {
    /// Its outcome in the attempts table.
    pub outcome: Outcome,
    /// The error message.
    pub error: String,
    /// Retry or dead letter.
    pub next: Next,
}

/// The result of a write that ends an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptWrite {
    /// The end of the attempt was written.
    Done,
    /// The lease is stale: the job was cancelled, rescued or deleted. Nothing was written.
    LeaseLost,
}

/// The result of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled. It was in this state.
    From(Status),
    /// The state forbids it.
    Forbidden(Status),
    /// There is no such job.
    NotFound,
}

/// The result of a retry by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retried {
    /// It is pending. It was in this state.
    From(Status),
    /// The state forbids it.
    Forbidden(Status),
    /// Another unfinished job holds its key.
    KeyTaken(Id),
    /// There is no such job.
    NotFound,
}

/// The answer to an id that may be shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The one job that it names.
    Job(Id),
    /// Several jobs have ids that begin with it; the first few of them in the order of their ids.
    Ambiguous(Vec<Id>),
    /// No job has such an id.
    NotFound,
}

impl Resolved {
    /// The shortest text that is taken for the beginning of an id.
    pub const MIN_PREFIX: usize = 6;

    /// How many ids an ambiguous answer lists.
    pub const LISTED: usize = 10;

    /// The answer for the ids that begin with what was asked.
    pub(super) fn of_candidates(mut candidates: Vec<Id>) -> Self {
        match candidates.len() {
            0 => Self::NotFound,
            1 => candidates.pop().map_or(Self::NotFound, Self::Job),
            _ => Self::Ambiguous(candidates),
        }
    }
}

/// Which jobs a bulk verb takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// In one of these states.
    pub states: Vec<Status>,
    /// Only of this type.
    pub job_type: Option<String>,
    /// Only jobs that ended at least this long ago or, if unfinished, were enqueued at least this long ago.
    pub older_than: Option<Duration>,
    /// The same as an instant: only jobs before it.
    pub before: Option<Timestamp>,
    /// The most jobs to take: those that ended or are due first.
    pub limit: usize,
}

/// The jobs that match a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// The jobs. A reference takes an eighth of the memory of an id.
    pub jobs: Vec<JobRef>,
    /// The ids of the first few, for display.
    pub first: Vec<Id>,
}

impl Selected {
    /// How many ids are returned.
    pub(super) const FIRST: usize = 10;
}

/// The result of a bulk verb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkResult {
    /// Jobs whose state it changed.
    pub moved: usize,
    /// Jobs that had left the given states or were deleted meanwhile.
    pub gone: usize,
    /// Jobs whose key another unfinished job holds.
    pub key_taken: usize,
}

/// A rescued job: its attempt was lost, or never started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The job.
    pub id: Id,
    /// Its type.
    pub job_type: String,
    /// The worker that held it.
    pub worker: Option<String>,
    /// The new state: failed or dead, or pending if its guest had not started, which costs no attempt.
    pub status: Status,
}

/// The number of changes noticed so far, by any process. The default comes before all changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeCursor(u64);

impl ChangeCursor {
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// How long finished jobs are kept; `None` keeps them forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Completed jobs.
    pub completed: Option<Duration>,
    /// Cancelled jobs.
    pub cancelled: Option<Duration>,
    /// Dead jobs.
    pub dead: Option<Duration>,
}

/// The result of a prune.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs deleted.
    pub deleted: usize,
    /// Whether there may be more to delete.
    pub more: bool,
    /// Why some jobs that are old enough were kept.
    pub obstacles: BTreeSet<String>,
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
