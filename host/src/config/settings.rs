//! The settings once they are checked: the options of every room.

use std::path::PathBuf;

use super::secrets::SecretSource;
use crate::queue::{Durability, TableName};
use crate::{plugins, worker};

/// Everything that `jobq.toml` and the variables say, with defaults for what they do not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The file that was read; `None` where there is none and the built-in defaults hold.
    pub file: Option<PathBuf>,
    /// Where the jobs are kept.
    pub queue: Queue,
    /// How they are run: concurrency, polling, leases, retention, and the rule of each type.
    pub worker: worker::WorkerOptions,
    /// Where the handlers lie, and which type wants which.
    pub plugins: plugins::PluginOptions,
    /// Where the secrets of the types are to be found; they are not among the grants before [`with_secrets`](Self::with_secrets).
    pub secrets: Vec<SecretSource>,
    /// What a person should know about these settings although nothing is wrong with them, each one line.
    pub notes: Vec<String>,
}

/// `[queue]`: where the jobs are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The SQLite file. Default `jobq.db`.
    pub database: PathBuf,
    /// The table in it. Default `jobs`.
    pub table: TableName,
    /// What an acknowledged enqueue survives. Default: a power cut.
    pub durability: Durability,
    /// Bytes of the longest payload that jobq itself takes. Default 1 MiB.
    pub max_payload: usize,
}

impl Settings {
    /// Whether `[jobs.NAME]` names this type.
    pub fn names(&self, job_type: &str) -> bool {
        self.plugins.types.contains_key(job_type)
    }

    /// The variables that a type is given as secrets, whether they have been read or not.
    pub fn secret_names(&self, job_type: &str) -> impl Iterator<Item = &str> {
        self.secrets.iter().filter(move |source| source.job_type().as_str() == job_type).map(SecretSource::name)
    }

    /// Bytes of the highest memory limit of all types: what one slot of the sandbox's pool must hold.
    pub fn max_memory(&self) -> usize {
        let rules = &self.worker.job_types;
        rules.by_type.values().chain([&rules.default]).map(|rule| rule.limits.memory).max().unwrap_or(0)
    }

    /// The keys of which only a restart takes the new value, where `self` is what the daemon was started with.
    /// Less memory or concurrency fits into the pool that was made then; more does not.
    pub fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        [
            ("queue.database", self.queue.database != new.queue.database),
            ("queue.table", self.queue.table != new.queue.table),
            ("queue.durability", self.queue.durability != new.queue.durability),
            ("plugins.dir", self.plugins.dir != new.plugins.dir),
            ("plugins.cache_dir", self.plugins.cache_dir != new.plugins.cache_dir),
            ("worker.concurrency", self.worker.concurrency < new.worker.concurrency),
            ("memory", self.max_memory() < new.max_memory()),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}
