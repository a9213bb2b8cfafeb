//! What the worker is told by the settings: how much runs at once, how it looks for work, and the rules of each job type.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::{JobType, Priority, Retention, RetryPolicies, RetryPolicy};
use crate::sandbox::{Grants, Limits};

/// The settings of one daemon's pool.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerOptions {
    /// Attempts at once. Default: 4 x cores.
    pub concurrency: NonZeroU32,
    /// Which types it serves. Default: all.
    pub types: Serve,
    /// How often to look whether another process wrote. Default 50 ms.
    pub poll_interval: Duration,
    /// The longest pause between two claims while there is no sign of work. Default 1 s.
    pub max_poll_interval: Duration,
    /// After this a daemon that stopped renewing counts as lost. Default 15 s.
    pub lease: Duration,
    /// How long running attempts may go on after a request to stop. Default 25 s.
    pub shutdown_grace: Duration,
    /// How long finished jobs are kept.
    pub retention: Retention,
    /// The rules of the job types.
    pub rules: Rules,
}

impl Default for WorkerOptions {
    /// As `jobq.toml` has it, but that finished jobs are kept for ever.
    fn default() -> Self {
        Self {
            concurrency: auto_concurrency(),
            types: Serve::All,
            poll_interval: Duration::from_millis(50),
            max_poll_interval: Duration::from_secs(1),
            lease: Duration::from_secs(15),
            shutdown_grace: Duration::from_secs(25),
            retention: Retention::default(),
            rules: Rules::default(),
        }
    }
}

/// What `concurrency = "auto"` stands for: four attempts for each core that this process may use.
pub fn auto_concurrency() -> NonZeroU32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores.saturating_mul(4)).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// Which job types a daemon serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serve {
    /// Every type it has a plugin for.
    All,
    /// Only these.
    Only(BTreeSet<JobType>),
}

impl Serve {
    /// Whether `job_type` is among them.
    pub fn includes(&self, job_type: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(types) => types.contains(job_type),
        }
    }
}

/// The rules of every job type.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// For types the settings do not name.
    pub default: Arc<Rule>,
    /// By type.
    pub by_type: BTreeMap<JobType, Arc<Rule>>,
    /// Bytes of a follow-up's payload. Default 1 MiB.
    pub max_payload: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { default: Arc::default(), by_type: BTreeMap::new(), max_payload: 1 << 20 }
    }
}

impl Rules {
    /// The rule of `job_type`.
    pub fn of(&self, job_type: &str) -> &Arc<Rule> {
        self.by_type.get(job_type).unwrap_or(&self.default)
    }

    /// The part of the rules that the store needs where no worker stands beside it.
    pub fn policies(&self) -> RetryPolicies {
        RetryPolicies {
            default: self.default.policy.clone(),
            by_type: self.by_type.iter().map(|(name, rule)| (name.clone(), rule.policy.clone())).collect(),
        }
    }
}

/// How jobs of one type are run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What one attempt may use.
    pub limits: Limits,
    /// What it is given.
    pub grants: Grants,
    /// What follows a failure.
    pub policy: RetryPolicy,
    /// Priority of jobs that are enqueued without one. Default 0.
    pub priority: Priority,
    /// The most a job may ask for as its own timeout. Default 1 h.
    pub max_timeout: Duration,
    /// Attempts of this type at once, within [`WorkerOptions::concurrency`]; `None` sets no limit of its own.
    pub concurrency: Option<NonZeroU32>,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            grants: Grants::default(),
            policy: RetryPolicy::default(),
            priority: 0,
            max_timeout: Duration::from_secs(3600),
            concurrency: None,
        }
    }
}
