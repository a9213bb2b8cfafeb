//! The settings of a pool: concurrency, polling, leases, retention, and the options of each job type.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::{JobType, Priority, Retention, RetryPolicies, RetryPolicy};
use crate::sandbox::{Grants, Limits};

/// The settings of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerOptions {
    /// Attempts at once. Default: 4 x cores.
    pub concurrency: NonZeroU32,
    /// The types whose jobs it runs. Default: all.
    pub types: ServedTypes,
    /// How often to check for writes by other processes where the system doesn't report them. Default 50 ms.
    pub poll_interval: Duration,
    /// The longest pause between two checks for work when nothing was reported. Default 1 s.
    pub max_poll_interval: Duration,
    /// How long a claim holds without renewal. After that, the attempt counts as lost. Default 15 s.
    pub lease: Duration,
    /// How long running attempts may continue after a request to stop. Default 25 s.
    pub shutdown_grace: Duration,
    /// How long finished jobs are kept.
    pub retention: Retention,
    /// The options of the job types.
    pub job_types: JobTypes,
}

impl Default for WorkerOptions {
    /// The defaults of `jobq.toml`, except that finished jobs are kept forever.
    fn default() -> Self {
        Self {
            concurrency: auto_concurrency(),
            types: ServedTypes::All,
            poll_interval: Duration::from_millis(50),
            max_poll_interval: Duration::from_secs(1),
            lease: Duration::from_secs(15),
            shutdown_grace: Duration::from_secs(25),
            retention: Retention::default(),
            job_types: JobTypes::default(),
        }
    }
}

/// The value of `concurrency = "auto"`: four attempts per core available to this process.
pub fn auto_concurrency() -> NonZeroU32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores.saturating_mul(4)).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// The job types that a daemon serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedTypes {
    /// Every type that has a handler.
    All,
    /// Only these.
    Only(BTreeSet<JobType>),
}

impl ServedTypes {
    /// Whether `job_type` is served.
    pub fn includes(&self, job_type: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(types) => types.contains(job_type),
        }
    }
}

/// The options of all job types.
#[derive(Clone, Debug, PartialEq)]
pub struct JobTypes {
    /// For types without options of their own.
    pub default: Arc<JobTypeOptions>,
    /// Options by type.
    pub by_type: BTreeMap<JobType, Arc<JobTypeOptions>>,
    /// The longest payload of a follow-up, in bytes. Default 1 MiB.
    pub max_payload: usize,
}

impl Default for JobTypes {
    fn default() -> Self {
        Self { default: Arc::default(), by_type: BTreeMap::new(), max_payload: 1 << 20 }
    }
}

impl JobTypes {
    /// The options of `job_type`.
    pub fn of(&self, job_type: &str) -> &Arc<JobTypeOptions> {
        self.by_type.get(job_type).unwrap_or(&self.default)
    }

    /// The retry policies, for store operations that decide about jobs of any type.
    pub fn policies(&self) -> RetryPolicies {
        RetryPolicies {
            default: self.default.policy.clone(),
            by_type: self
                .by_type
                .iter()
                .map(|(name, type_options)| (name.clone(), type_options.policy.clone()))
                .collect(),
        }
    }
}

/// The options of one job type.
#[derive(Clone, Debug, PartialEq)]
pub struct JobTypeOptions {
    /// The resources that one attempt may use.
    pub limits: Limits,
    /// The files, environment and network it may access.
    pub grants: Grants,
    /// When a failed job runs again, and when it is dead.
    pub policy: RetryPolicy,
    /// The priority of jobs enqueued without one. Default 0.
    pub priority: Priority,
    /// The longest timeout that a job may set for itself. Default 1 h.
    pub max_timeout: Duration,
    /// Attempts of this type at once, within [`WorkerOptions::concurrency`]. `None`: no limit of its own.
    pub concurrency: Option<NonZeroU32>,
}

impl Default for JobTypeOptions {
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
