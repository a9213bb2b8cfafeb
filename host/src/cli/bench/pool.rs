//! A fresh queue in a temporary directory, with the daemon's pool.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::{Code, Failure};
use crate::config::Settings;
use crate::queue::Retention;
use crate::queue::sqlite::{self, OpenMode, SqliteStore, TableName};
use crate::worker::{Handlers, Pool, ServedTypes, Setup, WorkerOptions};

/// How often to check whether the jobs have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How long to wait for the next outcome, on top of the time limit of an attempt.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The name of the database file.
pub(super) const DATABASE: &str = "jobq.db";

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Durability {
    /// A power cut
    Full,
    /// A crash of the process
    Normal,
}

impl Durability {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// A queue in a temporary directory and the pool that runs its jobs.
pub(super) struct BenchPool {
    pub(super) store: Arc<SqliteStore>,
    pub(super) pool: Pool,
    outcome_timeout: Duration,
    queue_dir: TempDir,
}

/// The options of the pool: those of the settings, but it serves every type and keeps finished jobs.
pub(super) fn options(settings: &Settings) -> WorkerOptions {
    WorkerOptions { types: ServedTypes::All, retention: Retention::default(), ..settings.worker.clone() }
}

impl BenchPool {
    /// Creates a queue below `workspace` and starts the pool.
    pub(super) fn start(
        workspace: &Path,
        durability: Durability,
        handlers: Arc<dyn Handlers>,
        options: WorkerOptions,
    ) -> anyhow::Result<Self> {
        Self::start_in(queue_dir(workspace)?, durability, handlers, options)
    }

    /// Starts the pool on the queue in `queue_dir`, which is created if it is missing.
    pub(super) fn start_in(
        queue_dir: TempDir,
        durability: Durability,
        handlers: Arc<dyn Handlers>,
        options: WorkerOptions,
    ) -> anyhow::Result<Self> {
        let store = Arc::new(open(queue_dir.path(), durability)?);
        let job_types = &options.job_types;
        let limits =
            job_types.by_type.values().chain([&job_types.default]).map(|type_options| type_options.limits.timeout);
        let outcome_timeout = limits.max().unwrap_or_default().saturating_add(TIMEOUT);
        let pool = Pool::start(Setup { store: store.clone(), handlers, options });
        Ok(Self { store, pool, outcome_timeout, queue_dir })
    }

    /// The directory of the queue.
    pub(super) fn queue_dir(&self) -> &Path {
        self.queue_dir.path()
    }

    /// Waits until the pool has recorded the outcomes of `count` attempts.
    ///
    /// # Errors
    /// When no outcome is recorded for too long.
    pub(super) async fn await_ends(&self, count: u64) -> anyhow::Result<()> {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            let recorded = self.pool.recorded();
            if recorded >= count {
                return Ok(());
            }
            if recorded != seen {
                (seen, since) = (recorded, Instant::now());
            }
            if since.elapsed() > self.outcome_timeout {
                let message =
                    format!("only {recorded} of {count} attempts ended, and none for {:?}", self.outcome_timeout);
                return Err(Failure::new(Code::Unexpected, message).into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Stops the pool after running attempts have ended. The store stays open.
    pub(super) async fn stop(self) -> StoppedPool {
        self.pool.stop(CancellationToken::new()).await;
        StoppedPool { store: self.store, _queue_dir: self.queue_dir }
    }

    /// Stops the pool and its running attempts. The store stays open.
    pub(super) async fn stop_at_once(self) -> StoppedPool {
        let at_once = CancellationToken::new();
        at_once.cancel();
        self.pool.stop(at_once).await;
        StoppedPool { store: self.store, _queue_dir: self.queue_dir }
    }
}

/// A queue whose pool has stopped. Dropping this deletes its files.
pub(super) struct StoppedPool {
    pub(super) store: Arc<SqliteStore>,
    _queue_dir: TempDir,
}

/// Creates a temporary directory for a queue.
pub(super) fn queue_dir(workspace: &Path) -> anyhow::Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("queue-").tempdir_in(workspace)?)
}

/// Opens the queue in `dir`, and creates it if it is missing.
pub(super) fn open(queue_dir: &Path, durability: Durability) -> anyhow::Result<SqliteStore> {
    Ok(SqliteStore::open(store_options(queue_dir, durability), OpenMode::Create)?)
}

/// The options for opening the queue in `dir`.
pub(super) fn store_options(queue_dir: &Path, durability: Durability) -> sqlite::QueueOptions {
    let durability = match durability {
        Durability::Full => sqlite::Durability::Full,
        Durability::Normal => sqlite::Durability::Normal,
    };
    let database = queue_dir.join(DATABASE);
    sqlite::QueueOptions { database, table: TableName::default(), durability, busy_timeout: None }
}
