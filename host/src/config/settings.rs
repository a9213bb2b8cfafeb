//! The checked settings: the options of every module.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::problem::{ConfigError, Findings};
use super::secrets::SecretSource;
use crate::queue::{Durability, JobType, TableName};
use crate::sandbox::Secret;
use crate::{plugins, worker};

/// Everything that `jobq.toml` and the variables set, with defaults for the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The file that was read; `None` if there is none, so the built-in defaults apply.
    pub file: Option<PathBuf>,
    /// Where the jobs are kept.
    pub queue: Queue,
    /// How they are run: concurrency, polling, leases, retention, and the options of each type.
    pub worker: worker::WorkerOptions,
    /// Where the handlers are, and which type uses which.
    pub plugins: plugins::PluginOptions,
    /// Where to find the secrets of the types. Only [`with_secrets`](Self::with_secrets) adds them to the grants.
    pub secrets: Vec<SecretSource>,
    /// Warnings that aren't errors, one per line.
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
    /// Bytes of the longest payload that jobq accepts. Default 1 MiB. Not enforced for jobs inserted by SQL.
    pub max_payload: usize,
}

impl Settings {
    /// Whether `[jobs.NAME]` names this type.
    pub fn names(&self, job_type: &str) -> bool {
        self.plugins.types.contains_key(job_type)
    }

    /// The names of the secrets that a type is given, whether their values have been read or not.
    pub fn secret_names(&self, job_type: &str) -> impl Iterator<Item = &str> {
        self.secrets.iter().filter(move |source| source.job_type().as_str() == job_type).map(SecretSource::name)
    }

    /// The highest memory limit of all types in bytes, which each slot of the sandbox's pool reserves.
    pub fn max_memory(&self) -> usize {
        let job_types = &self.worker.job_types;
        job_types.by_type.values().chain([&job_types.default]).map(|options| options.limits.memory).max().unwrap_or(0)
    }

    /// The keys that `new` changes and that only a restart applies. `self` holds the settings at the start of the daemon.
    /// Less memory or concurrency fits into the pool made at the start; more does not.
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

    /// Drops the secrets of every other type, for a command that runs guests of only this one.
    #[must_use]
    pub fn with_secrets_of_none_but(mut self, job_type: &JobType) -> Self {
        self.secrets.retain(|source| source.job_type() == job_type);
        self
    }

    /// Reads the secrets of every type and adds them to its grants. `variable` looks up a variable of the daemon.
    ///
    /// # Errors
    /// When one is missing or cannot be kept secret: every such problem, each with its line.
    pub fn with_secrets(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let (mut found, mut findings) = (BTreeMap::<JobType, Vec<(String, Secret)>>::new(), Findings::default());
        for source in &self.secrets {
            let Some(value) = findings.take(source.value(&variable)) else { continue };
            let secret = (source.name().to_owned(), Secret::new(&value));
            found.entry(source.job_type().clone()).or_default().push(secret);
            source.note_if_open(&mut findings);
        }
        if !findings.problems.is_empty() {
            return Err(ConfigError::new(findings.problems));
        }
        self.notes.extend(findings.notes);
        for (job_type, secrets) in found {
            if let Some(options) = self.worker.job_types.by_type.get_mut(&job_type) {
                Arc::make_mut(options).grants.secrets = secrets.into_iter().collect();
            }
        }
        Ok(self)
    }
}
