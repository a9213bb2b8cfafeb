//! The interface between a pool and the code that handles its jobs.
//!
//! The daemon uses [`PluginHandlers`]. An application that embeds the queue can use its own functions:
//! [`NativeHandlers`](super::NativeHandlers).

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::plugins::{Entry, Registry, State, Version};
use crate::queue::{Digest, PluginReport, Timestamp};
use crate::sandbox::{Call, FollowUps, Grants, Limits, Report, Sandbox, Tap};

/// The handlers of all job types. The set can change while the pool runs.
pub trait Handlers: Send + Sync + 'static {
    /// The types that have a handler now. Only jobs of these types are claimed.
    fn serving(&self) -> Vec<String>;

    /// The handler of `job_type`. A running attempt keeps the one it started with.
    fn current(&self, job_type: &str) -> Option<Arc<dyn Handler>>;

    /// Changes whenever the answers of the other methods may have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The state of each type's plugin, for `plugin list`.
    fn report(&self) -> Vec<PluginReport>;
}

/// The code that handles one job type.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Runs one attempt within `limits`. Its logs and progress go to `tap`, which can also stop it.
    async fn run(
        &self,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        tap: Arc<Tap>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> Report;

    /// The SHA-256 of its `.wasm` file, or `None` for a function.
    fn digest(&self) -> Option<Digest>;
}

/// The plugins of a directory. Each attempt runs in a fresh sandbox.
pub struct PluginHandlers {
    sandbox: Arc<Sandbox>,
    registry: Arc<Registry>,
}

impl PluginHandlers {
    /// `sandbox` must be the one that `registry` compiles for.
    pub fn new(sandbox: Arc<Sandbox>, registry: Arc<Registry>) -> Self {
        Self { sandbox, registry }
    }
}

impl Handlers for PluginHandlers {
    fn serving(&self) -> Vec<String> {
        self.registry.serving()
    }

    fn current(&self, job_type: &str) -> Option<Arc<dyn Handler>> {
        let version = self.registry.current(job_type)?;
        Some(Arc::new(Plugin { sandbox: self.sandbox.clone(), version }))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.registry.changes()
    }

    fn report(&self) -> Vec<PluginReport> {
        self.registry.entries().into_iter().map(|(job_type, entry)| report(job_type, &entry)).collect()
    }
}

struct Plugin {
    sandbox: Arc<Sandbox>,
    version: Arc<Version>,
}

#[async_trait]
impl Handler for Plugin {
    async fn run(
        &self,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        tap: Arc<Tap>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> Report {
        self.sandbox.run(self.version.start(), call, limits, grants, tap, follow_ups).await
    }

    fn digest(&self) -> Option<Digest> {
        Some(Digest(self.version.digest()))
    }
}

fn report(job_type: String, entry: &Entry) -> PluginReport {
    PluginReport {
        job_type,
        file: entry.file.clone(),
        state: entry.state.as_str().to_owned(),
        digest: entry.version.as_ref().map(|version| hex::encode(version.digest())),
        reason: match &entry.state {
            State::Broken(reason) => Some(reason.clone()),
            State::Compiling | State::Serving | State::Missing => None,
        },
        since: timestamp(entry.since),
        attempts: entry.version.as_ref().map_or(0, |version| version.attempts()),
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
