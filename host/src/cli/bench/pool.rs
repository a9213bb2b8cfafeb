//! A fresh queue with the daemon's pool on it.

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

/// How often it is looked whether the jobs have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// If no attempt ends for so long beyond its time limit, none will.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The file of a bench's queue, in its home.
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

/// A queue in a directory of its own, and a pool that works on it.
pub(super) struct BenchPool {
    pub(super) store: Arc<SqliteStore>,
    pub(super) pool: Pool,
    longest: Duration,
    home: TempDir,
}

/// The options of a bench's pool: those of the settings, serving every type and keeping what has ended.
pub(super) fn options(settings: &Settings) -> WorkerOptions {
    WorkerOptions { types: ServedTypes::All, retention: Retention::default(), ..settings.worker.clone() }
}

impl BenchPool {
    /// Makes the queue below `workspace` and starts the pool.
    pub(super) fn start(
        workspace: &Path,
        durability: Durability,
        handlers: Arc<dyn Handlers>,
        options: WorkerOptions,
    ) -> anyhow::Result<Self> {
        Self::start_in(home(workspace)?, durability, handlers, options)
    }

    /// Starts the pool on the queue in `home`, which is made where it is missing.
    pub(super) fn start_in(
        home: TempDir,
        durability: Durability,
        handlers: Arc<dyn Handlers>,
        options: WorkerOptions,
    ) -> anyhow::Result<Self> {
        let store = Arc::new(open(home.path(), durability)?);
        let job_types = &options.job_types;
        let limits =
            job_types.by_type.values().chain([&job_types.default]).map(|type_options| type_options.limits.timeout);
        let longest = limits.max().unwrap_or_default().saturating_add(TIMEOUT);
        let pool = Pool::start(Setup { store: store.clone(), handlers, options });
        Ok(Self { store, pool, longest, home })
    }

    /// Where the queue is.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Waits until the pool has put the ends of `count` attempts on record.
    ///
    /// # Errors
    /// When nothing ends any more.
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
            if since.elapsed() > self.longest {
                let message = format!("only {recorded} of {count} attempts ended, and none for {:?}", self.longest);
                return Err(Failure::new(Code::Unexpected, message).into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Stops the pool when what runs has ended; what is left is the store, to be looked at and closed.
    pub(super) async fn stop(self) -> StoppedPool {
        self.pool.stop(CancellationToken::new()).await;
        StoppedPool { store: self.store, _home: self.home }
    }

    /// Stops the pool and what runs.
    pub(super) async fn stop_at_once(self) -> StoppedPool {
        let at_once = CancellationToken::new();
        at_once.cancel();
        self.pool.stop(at_once).await;
        StoppedPool { store: self.store, _home: self.home }
    }
}

/// A queue whose pool has stopped; its files are deleted when this is dropped.
pub(super) struct StoppedPool {
    pub(super) store: Arc<SqliteStore>,
    _home: TempDir,
}

/// A directory for a queue; deleted when it is dropped.
pub(super) fn home(workspace: &Path) -> anyhow::Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("queue-").tempdir_in(workspace)?)
}

/// The queue in `home`, made where it is missing.
pub(super) fn open(home: &Path, durability: Durability) -> anyhow::Result<SqliteStore> {
    Ok(SqliteStore::open(store_options(home, durability), OpenMode::Create)?)
}

/// How the queue in `home` is opened.
pub(super) fn store_options(home: &Path, durability: Durability) -> sqlite::QueueOptions {
    let durability = match durability {
        Durability::Full => sqlite::Durability::Full,
        Durability::Normal => sqlite::Durability::Normal,
    };
    let database = home.join(DATABASE);
    sqlite::QueueOptions { database, table: TableName::default(), durability, busy_timeout: None }
}
