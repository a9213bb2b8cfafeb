//! The sandbox with the handlers of a bench loaded, as the daemon loads them; and what it does without a queue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::task::JoinSet;

use super::figures::rate;
use super::ground::corner;
use super::subject::Subject;
use crate::cli::exit::{Code, Failure};
use crate::plugins::{self, Cache, Registry, Source, State, Version, load_file};
use crate::queue::Id;
use crate::sandbox::{self, AttemptHandle, Call, FollowUp, FollowUpError, FollowUps, GuestOutcome, Metering, Sandbox};
use crate::worker::{Handlers, PluginHandlers, Rule, WorkerOptions};

/// The longest that the sandbox is measured alone.
const SPAN: Duration = Duration::from_secs(2);

/// Handlers that serve.
pub(super) struct Guests {
    sandbox: Arc<Sandbox>,
    registry: Arc<Registry>,
    slots: u32,
}

impl Guests {
    /// Puts the subjects into a plugin directory below `ground` and waits until all of them serve.
    ///
    /// # Errors
    /// [`Code::Problems`] when one does not load.
    pub(super) async fn load(ground: &Path, subjects: &[&Subject], options: &WorkerOptions) -> anyhow::Result<Self> {
        let dir = corner(ground, "plugins")?;
        let rules = subjects.iter().map(|subject| options.rules.of(subject.job_type.as_str()));
        let max_memory = rules.map(|rule| rule.limits.memory).max().unwrap_or(0);
        let slots = options.concurrency.get();
        let sandbox = Arc::new(Sandbox::new(sandbox::SandboxOptions { slots, max_memory })?);
        let cache_dir = ground.join("cache");
        let mut types = BTreeMap::new();
        for subject in subjects {
            let file = format!("{}.wasm", subject.job_type);
            let path = dir.join(&file);
            std::fs::write(&path, &subject.wasm)?;
            let metering = options.rules.of(subject.job_type.as_str()).limits.metering();
            compile(path, metering, sandbox.clone(), Cache::open(&cache_dir)).await?;
            types.insert(subject.job_type.to_string(), Source { file, metering });
        }
        let metering = options.rules.default.limits.metering();
        let options = plugins::PluginOptions { dir, cache_dir, types, metering };
        let registry = Registry::start(options, sandbox.clone())?;
        let guests = Self { sandbox, registry, slots };
        for subject in subjects {
            guests.await_service(subject).await?;
        }
        Ok(guests)
    }

    /// What a pool runs them by.
    pub(super) fn handlers(&self) -> Arc<dyn Handlers> {
        Arc::new(PluginHandlers::new(self.sandbox.clone(), self.registry.clone()))
    }

    async fn await_service(&self, subject: &Subject) -> anyhow::Result<Arc<Version>> {
        let mut changes = self.registry.changes();
        loop {
            let entry = self.registry.entries().remove(subject.job_type.as_str());
            match entry.map(|entry| (entry.state, entry.version)) {
                Some((State::Serving, Some(version))) => return Ok(version),
                Some((State::Broken(reason), _)) => {
                    let message = format!("the plugin for `{}` does not load: {reason}", subject.job_type);
                    return Err(Failure::new(Code::Problems, message).into());
                }
                _ => changes.changed().await?,
            }
        }
    }

    /// Runs the subject once, so that a handler that fails on its payload is told before thousands of its jobs are.
    ///
    /// # Errors
    /// When it does not complete.
    pub(super) async fn rehearse(&self, subject: &Subject, rule: &Rule) -> anyhow::Result<()> {
        let version = self.await_service(subject).await?;
        let handle = Arc::new(AttemptHandle::default());
        let call = call(subject);
        let report =
            self.sandbox.run(version.plugin(), call, &rule.limits, &rule.grants, handle, Arc::new(Nowhere)).await;
        let words = match report.outcome {
            GuestOutcome::Completed(_) => return Ok(()),
            GuestOutcome::Failed { message, .. } => format!("it failed: {message}"),
            GuestOutcome::Fatal(message) => format!("it failed for good: {message}"),
            GuestOutcome::Snoozed(delay) => format!("it asked to be called again after {delay:?}"),
            GuestOutcome::Trapped(story) => format!("it trapped: {story}"),
            GuestOutcome::TimedOut(story) | GuestOutcome::OutOfFuel(story) | GuestOutcome::OutOfMemory(story) => story,
            GuestOutcome::HostShortage(message) => message,
            GuestOutcome::Stopped => "it was stopped".to_owned(),
        };
        let message = format!("the handler of `{}` does not complete this payload: {words}", subject.job_type);
        Err(Failure::new(Code::Unexpected, message).hint("`--payload` gives it another").into())
    }

    /// Runs per second of the sandbox alone: the same handler, limits and grants, one task a slot, no queue.
    /// Ends after `runs`, or after two seconds.
    pub(super) async fn floor(&self, subject: &Subject, rule: &Arc<Rule>, runs: u64) -> anyhow::Result<f64> {
        let version = self.await_service(subject).await?;
        let (call, done) = (call(subject), Arc::new(AtomicU64::new(0)));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..self.slots {
            let (sandbox, version, rule) = (self.sandbox.clone(), version.clone(), rule.clone());
            let (call, done) = (call.clone(), done.clone());
            tasks.spawn(async move {
                while started.elapsed() < SPAN && done.load(Ordering::Relaxed) < runs {
                    let (handle, nowhere) = (Arc::new(AttemptHandle::default()), Arc::new(Nowhere));
                    let (limits, grants) = (&rule.limits, &rule.grants);
                    sandbox.run(version.plugin(), call.clone(), limits, grants, handle, nowhere).await;
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

fn call(subject: &Subject) -> Call {
    Call {
        id: Id::generate().to_string(),
        job_type: subject.job_type.to_string(),
        payload: subject.payload.as_str().to_owned(),
        attempt: 1,
        max_attempts: 1,
    }
}

/// Takes follow-ups where there is no queue.
struct Nowhere;

#[async_trait]
impl FollowUps for Nowhere {
    async fn enqueue(&self, _: FollowUp) -> Result<String, FollowUpError> {
        Ok(Id::generate().to_string())
    }
}
