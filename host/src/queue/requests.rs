//! What goes into the verbs of the store and what comes back: requests, receipts, answers.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Digest, Id, JobRef, JobType, Lease, LogLine, Next, Outcome, Status, Timestamp, WorkerName};

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
///
/// Jobs are taken in the order of claims. Each uses one of the free `slots` while there is one and its type may take another;
/// otherwise it is taken ahead of a free slot while its type allows that. A type that can take no more is left out, and the
/// claim goes on with the others until none of them has a due job.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The types it can serve now.
    pub wants: Vec<Want>,
    /// Free slots, which all wanted types share.
    pub slots: usize,
    /// How long the leases hold.
    pub lease: Duration,
    /// Its name, written into the rows.
    pub worker: WorkerName,
}

/// One type a worker can serve.
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
    /// Whether a job of it could be taken beside so many free slots.
    pub(super) fn is_open(&self, free: usize) -> bool {
        self.ahead > 0 || (self.slots > 0 && free > 0)
    }

    /// The most jobs of it that could be taken beside so many free slots.
    pub(super) fn most(&self, free: usize) -> usize {
        self.slots.min(free).saturating_add(self.ahead)
    }

    /// Counts a job of it that is taken: into one of the `free` slots while it may have one, ahead of them otherwise.
    pub(super) fn take_one(&mut self, free: &mut usize) {
        if self.slots > 0 && *free > 0 {
            self.slots -= 1;
            *free -= 1;
        } else {
            self.ahead = self.ahead.saturating_sub(1);
        }
    }
}

/// The answer to a claim.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The leased jobs in the order in which they shall start.
    pub jobs: Vec<Claimed>,
    /// When the next job is due, as a delay from now, of the wanted types that have no due job left and could take one more;
    /// `None` where none waits.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleLease {
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
    /// What it logged since the last [`Store::record`](super::Store::record).
    pub lines: Vec<LogLine>,
}

impl Receipt {
    /// For an attempt that ran so long, of which nothing else is known.
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
pub struct AttemptFailure {
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
    /// The jobs, by references that take an eighth of the room of their ids.
    pub jobs: Vec<JobRef>,
    /// The ids of the first few, for people.
    pub first: Vec<Id>,
}

impl Selected {
    /// So many ids are told.
    pub(super) const FIRST: usize = 10;
}

/// The answer of a verb that took many jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkResult {
    /// Jobs that it moved.
    pub moved: usize,
    /// Jobs that had left the asked states or were deleted before it came to them.
    pub gone: usize,
    /// Jobs whose key another unfinished job holds.
    pub key_taken: usize,
}

/// The result of a deletion by request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Jobs deleted.
    pub deleted: usize,
    /// Jobs that were running, had left the given states or were deleted meanwhile.
    pub gone: usize,
    /// Jobs kept because something refers to them.
    pub kept: usize,
    /// Why they were kept.
    pub obstacles: BTreeSet<String>,
}

/// An attempt that was given up for lost, or one that never started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The job.
    pub id: Id,
    /// Its type.
    pub job_type: String,
    /// The worker that held it.
    pub worker: Option<String>,
    /// Where the job stands now: failed or dead, or pending where its guest had not started, which costs no attempt.
    pub status: Status,
}

/// How many changes of the queue have been noticed, whoever made them. The default stands before all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeCursor(u64);

impl ChangeCursor {
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs deleted.
    pub deleted: usize,
    /// Whether more of them may be waiting.
    pub more: bool,
    /// Why some that are old enough are kept all the same, for people.
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
