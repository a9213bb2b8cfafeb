//! What a pool runs: the seam between claiming a job and the code that handles it.
//!
//! The daemon's pool runs [`PluginHandlers`]; an application that embeds the queue may bring
//! [`NativeHandlers`](super::NativeHandlers), its own functions.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::plugins::{Entry, Registry, State, Version};
use crate::queue::{Digest, PluginReport, Timestamp};
use crate::sandbox::{AttemptHandle, AttemptReport, Call, FollowUps, Grants, Limits, Sandbox};

/// Who handles which job type, now.
pub trait Handlers: Send + Sync + 'static {
    /// The types that can be served now; only these are claimed.
    fn serving(&self) -> Vec<String>;

    /// What serves `job_type` now. Running attempts keep what they started with.
    fn current(&self, job_type: &str) -> Option<Arc<dyn Handler>>;

    /// Tells of every change of the other answers.
    fn changes(&self) -> watch::Receiver<u64>;

    /// How each type stands, for `plugin list`.
    fn report(&self) -> Vec<PluginReport>;
}

/// The code that handles one job type.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Runs one attempt within its limits and tells how it ended.
    async fn run(
        &self,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        handle: Arc<AttemptHandle>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> AttemptReport;

    /// The `.wasm` it is; `None` for what is no plugin.
    fn digest(&self) -> Option<Digest>;
}

/// The plugins of a directory, each attempt in a sandbox of its own.
pub struct PluginHandlers {
    sandbox: Arc<Sandbox>,
    registry: Arc<Registry>,
}

impl PluginHandlers {
    /// What the registry serves, run by the sandbox it loads for.
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
        handle: Arc<AttemptHandle>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> AttemptReport {
        self.sandbox.run(self.version.start(), call, limits, grants, handle, follow_ups).await
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
