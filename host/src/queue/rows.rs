//! What the store keeps, as it is read back: jobs, attempts, log lines, daemons.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Digest, Id, JobRef, Outcome, Priority, Status, Timestamp};

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What verbs that take many jobs call it; in order of insertion.
    pub reference: JobRef,
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

/// What a table of many jobs shows of one: no payload, no result, and only the beginning of the error.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSummary {
    /// See [`Job::reference`].
    pub reference: JobRef,
    /// Public id.
    pub id: Id,
    /// Type.
    pub job_type: String,
    /// State.
    pub status: Status,
    /// Higher is claimed first.
    pub priority: Priority,
    /// Attempts that counted.
    pub attempts: u32,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// When it may run.
    pub scheduled_at: Timestamp,
    /// Start of the latest attempt.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// The first [`JobSummary::MAX_ERROR`] characters of what went wrong in the latest failed attempt.
    pub error: Option<String>,
    /// Latest fencing token.
    pub lease: i64,
    /// Until when the lease holds.
    pub lease_until: Option<Timestamp>,
    /// Latest worker.
    pub worker: Option<String>,
    /// Latest progress report of the running attempt: percent and a few words.
    pub progress: Option<(u8, String)>,
}

impl JobSummary {
    /// Characters of an error that a summary has.
    pub const MAX_ERROR: usize = 300;
}

impl From<&Job> for JobSummary {
    fn from(job: &Job) -> Self {
        Self {
            reference: job.reference,
            id: job.id.clone(),
            job_type: job.job_type.clone(),
            status: job.status,
            priority: job.priority,
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            scheduled_at: job.scheduled_at,
            started_at: job.started_at,
            completed_at: job.completed_at,
            error: job.error.as_ref().map(|error| error.chars().take(Self::MAX_ERROR).collect()),
            lease: job.lease,
            lease_until: job.lease_until,
            worker: job.worker.clone(),
            progress: job.progress.clone(),
        }
    }
}

/// What readers need of a leased job to show its state.
pub(super) trait Leased {
    /// Its state as it is stored.
    fn status(&self) -> Status;

    /// The latest worker.
    fn worker(&self) -> Option<&str>;

    /// The row and the latest fencing token.
    fn attempt(&self) -> (JobRef, i64);

    /// Shows it as pending: a worker has claimed it, and its guest is known not to have started.
    fn show_as_pending(&mut self);
}

macro_rules! leased {
    ($job:ty) => {
        impl Leased for $job {
            fn status(&self) -> Status {
                self.status
            }

            fn worker(&self) -> Option<&str> {
                self.worker.as_deref()
            }

            fn attempt(&self) -> (JobRef, i64) {
                (self.reference, self.lease)
            }

            fn show_as_pending(&mut self) {
                (self.status, self.started_at, self.progress) = (Status::Pending, None, None);
            }
        }
    };
}

leased!(Job);
leased!(JobSummary);

impl AttemptRecord {
    /// So many of a job are kept, the latest ones.
    pub(super) const KEPT: usize = 100;
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

/// How many jobs there are, altogether and of each type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// All jobs.
    pub counts: Counts,
    /// The types of jobs that have not ended or are dead, in order of their names.
    pub types: Vec<TypeOverview>,
}

/// The jobs of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeOverview {
    /// The type.
    pub job_type: String,
    /// Its pending, running, failed and dead jobs.
    pub counts: Counts,
    /// Since when the job that has waited longest is due; `None` where none is.
    pub oldest_due: Option<Timestamp>,
}

impl Daemon {
    /// A daemon that has been silent for longer was killed, and nobody retired it.
    pub(super) const FORGOTTEN: Duration = Duration::from_secs(86_400);
}

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
