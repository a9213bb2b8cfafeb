//! Rows as the store returns them: jobs, attempts, log lines, daemons.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Digest, Id, JobRef, Outcome, Priority, Status, Timestamp};

/// A row of the jobs table.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Identifies it in bulk verbs. In order of insertion.
    pub reference: JobRef,
    /// Public id.
    pub id: Id,
    /// Type, as stored.
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
    /// Latest progress report of the latest attempt: percent and a message.
    pub progress: Option<(u8, String)>,
}

impl AttemptRecord {
    /// How many of a job are kept: the latest ones.
    pub(super) const KEPT: usize = 100;
}

/// A row of the attempts table: one attempt that has ended.
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
    /// Fuel used; `None` if it was not counted.
    pub fuel: Option<u64>,
    /// Peak memory in bytes; `None` if unknown.
    pub peak_memory: Option<u64>,
    /// The `.wasm` that ran.
    pub digest: Option<Digest>,
}

/// The source of a log line.
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

    /// Parses the word in the table.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Log, Self::Stdout, Self::Stderr].into_iter().find(|source| source.as_str() == word)
    }
}

/// One line that an attempt wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Number of the attempt. The store sets it on read.
    pub attempt: u32,
    /// Fencing token of the attempt. The store sets it on read.
    pub lease: i64,
    /// When it was written.
    pub time: Timestamp,
    /// Its source.
    pub source: LogSource,
    /// `debug`, `info`, `warn` or `error`; `None` for stdout and stderr.
    pub level: Option<&'static str>,
    /// The text.
    pub message: String,
}

/// The number of jobs in each state. A state without jobs is absent.
pub type Counts = BTreeMap<Status, u64>;

/// The status line: `pending: 5, running: 2, completed: 100, failed: 3, dead: 1`,
/// and `cancelled` if there are any.
pub fn summary(counts: &Counts) -> String {
    let count = |status| counts.get(&status).copied().unwrap_or(0);
    let shown = |status: &Status| *status != Status::Cancelled || count(*status) > 0;
    let parts: Vec<String> =
        Status::ALL.into_iter().filter(shown).map(|status| format!("{status}: {}", count(status))).collect();
    parts.join(", ")
}

impl Daemon {
    /// A daemon that has been silent for longer was killed and never retired.
    pub(super) const FORGOTTEN: Duration = Duration::from_secs(86_400);
}

/// A daemon's report about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its name in the `worker` column.
    pub worker: String,
    /// Process id.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// When it wrote this. The store sets it.
    pub seen_at: Timestamp,
    /// Attempts it can run at once.
    pub slots: u32,
    /// Attempts it was running.
    pub busy: u32,
    /// The plugins it knows.
    pub plugins: Vec<PluginReport>,
}

/// A daemon's report about the plugin of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginReport {
    /// The type.
    pub job_type: String,
    /// File name in the plugin directory.
    pub file: String,
    /// `compiling`, `serving`, `broken` or `missing`.
    pub state: String,
    /// SHA-256 of the serving version, in hex.
    pub digest: Option<String>,
    /// Why the newest file cannot be loaded.
    pub reason: Option<String>,
    /// When it entered this state.
    pub since: Timestamp,
    /// Attempts that ran on it in this daemon.
    pub attempts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_has_the_documented_form() {
        let mut counts = Counts::from([
            (Status::Pending, 5),
            (Status::Running, 2),
            (Status::Completed, 100),
            (Status::Failed, 3),
            (Status::Dead, 1),
        ]);
        assert_eq!(summary(&counts), "pending: 5, running: 2, completed: 100, failed: 3, dead: 1");
        counts.insert(Status::Cancelled, 4);
        assert_eq!(summary(&counts), "pending: 5, running: 2, completed: 100, failed: 3, dead: 1, cancelled: 4");
        assert_eq!(summary(&Counts::new()), "pending: 0, running: 0, completed: 0, failed: 0, dead: 0");
    }
}
