//! The sandbox with the handlers of a bench loaded, as the daemon loads them; and what it does without a queue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::task::JoinSet;

use super::statistics::rate;
use super::workload::Workload;
use super::workspace::subdirectory;
use crate::cli::exit::{Code, Failure};
use crate::plugins::{self, Cache, Registry, Source, State, Version, load_file};
use crate::queue::Id;
use crate::sandbox::{self, Call, FollowUp, FollowUpError, FollowUps, GuestOutcome, Metering, Sandbox, Tap};
use crate::worker::{Handlers, JobTypeOptions, PluginHandlers, WorkerOptions};

/// The longest that the sandbox is measured alone.
const SPAN: Duration = Duration::from_secs(2);

/// Handlers that serve.
pub(super) struct Guests {
    sandbox: Arc<Sandbox>,
    registry: Arc<Registry>,
    slots: u32,
}

impl Guests {
    /// Puts the workloads into a plugin directory below `workspace` and waits until all of them serve.
    ///
    /// # Errors
    /// [`Code::Problems`] when one does not load.
    pub(super) async fn load(
        workspace: &Path,
        workloads: &[&Workload],
        options: &WorkerOptions,
    ) -> anyhow::Result<Self> {
        let dir = subdirectory(workspace, "plugins")?;
        let job_types = workloads.iter().map(|workload| options.job_types.of(workload.job_type.as_str()));
        let max_memory = job_types.map(|type_options| type_options.limits.memory).max().unwrap_or(0);
        let slots = options.concurrency.get();
        let sandbox = Arc::new(Sandbox::new(sandbox::SandboxOptions { slots, max_memory })?);
        let cache_dir = workspace.join("cache");
        let mut types = BTreeMap::new();
        for workload in workloads {
            let file = format!("{}.wasm", workload.job_type);
            let path = dir.join(&file);
            std::fs::write(&path, &workload.wasm)?;
            let metering = options.job_types.of(workload.job_type.as_str()).limits.metering();
            compile(path, metering, sandbox.clone(), Cache::open(&cache_dir)).await?;
            types.insert(workload.job_type.to_string(), Source { file, metering });
        }
        let metering = options.job_types.default.limits.metering();
        let options = plugins::PluginOptions { dir, cache_dir, types, metering };
        let registry = Registry::start(options, sandbox.clone())?;
        let guests = Self { sandbox, registry, slots };
        for workload in workloads {
            guests.await_service(workload).await?;
        }
        Ok(guests)
    }

    /// What a pool runs them by.
    pub(super) fn handlers(&self) -> Arc<dyn Handlers> {
        Arc::new(PluginHandlers::new(self.sandbox.clone(), self.registry.clone()))
    }

    async fn await_service(&self, workload: &Workload) -> anyhow::Result<Arc<Version>> {
        let mut changes = self.registry.changes();
        loop {
            let entry = self.registry.entries().remove(workload.job_type.as_str());
            match entry.map(|entry| (entry.state, entry.version)) {
                Some((State::Serving, Some(version))) => return Ok(version),
                Some((State::Broken(reason), _)) => {
                    let message = format!("the plugin for `{}` does not load: {reason}", workload.job_type);
                    return Err(Failure::new(Code::Problems, message).into());
                }
                _ => changes.changed().await?,
            }
        }
    }

    /// Runs the workload once, so that a handler that fails on its payload is told before thousands of its jobs are.
    ///
    /// # Errors
    /// When it does not complete.
    pub(super) async fn check_once(&self, workload: &Workload, type_options: &JobTypeOptions) -> anyhow::Result<()> {
        let version = self.await_service(workload).await?;
        let tap = Arc::new(Tap::default());
        let call = call(workload);
        let report = self
            .sandbox
            .run(version.plugin(), call, &type_options.limits, &type_options.grants, tap, Arc::new(DiscardFollowUps))
            .await;
        let reason = match report.outcome {
            GuestOutcome::Completed(_) => return Ok(()),
            GuestOutcome::Failed { message, .. } => format!("it failed: {message}"),
            GuestOutcome::Fatal(message) => format!("it failed for good: {message}"),
            GuestOutcome::Snoozed(delay) => format!("it asked to be called again after {delay:?}"),
            GuestOutcome::Trapped(story) => format!("it trapped: {story}"),
            GuestOutcome::TimedOut(story) | GuestOutcome::OutOfFuel(story) | GuestOutcome::OutOfMemory(story) => story,
            GuestOutcome::Stopped => "it was stopped".to_owned(),
        };
        let message = format!("the handler of `{}` does not complete this payload: {reason}", workload.job_type);
        Err(Failure::new(Code::Unexpected, message).hint("`--payload` gives it another").into())
    }

    /// Runs per second of the sandbox alone: the same handler, limits and grants, one task a slot, no queue.
    /// Ends after `runs`, or after two seconds.
    pub(super) async fn floor(
        &self,
        workload: &Workload,
        type_options: &Arc<JobTypeOptions>,
        runs: u64,
    ) -> anyhow::Result<f64> {
        let version = self.await_service(workload).await?;
        let (call, done) = (call(workload), Arc::new(AtomicU64::new(0)));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..self.slots {
            let (sandbox, version, type_options) = (self.sandbox.clone(), version.clone(), type_options.clone());
            let (call, done) = (call.clone(), done.clone());
            tasks.spawn(async move {
                while started.elapsed() < SPAN && done.load(Ordering::Relaxed) < runs {
                    let (tap, nowhere) = (Arc::new(Tap::default()), Arc::new(DiscardFollowUps));
                    let (limits, grants) = (&type_options.limits, &type_options.grants);
                    sandbox.run(version.plugin(), call.clone(), limits, grants, tap, nowhere).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while let Some(task) = tasks.join_next().await {
            task?;
        }
        Ok(rate(done.load(Ordering::Relaxed), started.elapsed()))
    }
}

/// Compiles a plugin into the cache, from where the registry takes it: what is wrong with it is told once, here.
async fn compile(path: PathBuf, metering: Metering, sandbox: Arc<Sandbox>, cache: Cache) -> anyhow::Result<()> {
    let name = path.file_stem().unwrap_or_default().display().to_string();
    let loaded = tokio::task::spawn_blocking(move || load_file(&path, metering, &sandbox, &cache).map(drop)).await?;
    loaded
        .map_err(|error| Failure::new(Code::Problems, format!("the plugin for `{name}` does not load: {error}")).into())
}

fn call(workload: &Workload) -> Call {
    Call {
        id: Id::generate().to_string(),
        job_type: workload.job_type.to_string(),
        payload: workload.payload.as_str().to_owned(),
        attempt: 1,
        max_attempts: 1,
    }
}

/// Takes follow-ups where there is no queue.
struct DiscardFollowUps;

#[async_trait]
impl FollowUps for DiscardFollowUps {
    async fn enqueue(&self, _: FollowUp) -> Result<String, FollowUpError> {
        Ok(Id::generate().to_string())
    }
}
