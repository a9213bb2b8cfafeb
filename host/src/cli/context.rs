//! What every command needs: the settings, the store, a runtime.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::exit::{Code, Failure};
use super::output::{Format, cell};
use crate::config::{self, Environment, Location, Queue, Settings, suggest};
use crate::plugins::{JobTypes, NotServed};
use crate::queue::{self, Id, JobType, OpenMode, Resolved, Store};

/// How long a command waits for another process that holds the database.
const PATIENCE: Duration = Duration::from_secs(30);

/// Flags of every command.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Global {
    /// The settings file [default: jobq.toml]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "JOBQ_CONFIG",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(super) config: Option<PathBuf>,
    /// How data is printed: table for people, json as one document, or ndjson, an object a line
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "FORMAT",
        help_heading = "Global options"
    )]
    pub(super) output: Format,
}

/// What every command is given.
#[derive(Clone)]
pub(super) struct Context {
    global: Global,
}

impl Context {
    pub(super) fn new(global: Global) -> Self {
        Self { global }
    }

    /// How data is printed.
    pub(super) fn format(&self) -> Format {
        self.global.output
    }

    /// The settings, with every problem in them told at once.
    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        Ok(self.load()?)
    }

    /// The settings, or all that is wrong with them.
    pub(super) fn load(&self) -> Result<Settings, config::ConfigError> {
        config::load(&Location::find(self.global.config.clone()), &Environment::of_process())
    }

    /// The settings with the secrets they name: what a daemon runs on. Everybody else does without.
    pub(super) fn load_to_run(&self) -> Result<Settings, config::ConfigError> {
        self.load()?.with_secrets(|name| std::env::var_os(name))
    }

    /// The settings with the secrets of one type, to run guests of it.
    pub(super) fn load_to_try(&self, job_type: &JobType) -> Result<Settings, config::ConfigError> {
        self.load()?.with_secrets_of_none_but(job_type).with_secrets(|name| std::env::var_os(name))
    }

    /// The queue of the settings.
    pub(super) fn open(&self, settings: &Settings, mode: OpenMode) -> anyhow::Result<Arc<dyn Store>> {
        Ok(queue::open(store_options(settings, Some(PATIENCE)), mode)?)
    }

    /// Runs a command's work on one thread.
    pub(super) fn block_on<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let done = runtime.block_on(work);
        // A guest's read from a dead file system must not hold up the end.
        runtime.shutdown_background();
        done
    }
}

/// How the store of the settings is opened.
pub(super) fn store_options(settings: &Settings, patience: Option<Duration>) -> queue::QueueOptions {
    let Queue { database, table, durability, .. } = settings.queue.clone();
    queue::QueueOptions { database, table, durability, busy_timeout: patience }
}

/// The types that can be enqueued: those the settings name, and those that a file in the plugin directory serves by its name.
pub(super) fn known_types(settings: &Settings) -> Vec<String> {
    JobTypes::read(&settings.plugins).names().map(str::to_owned).collect()
}

/// Refuses a type that no daemon with these settings would ever serve.
/// A type of the settings passes without its file, which may be on another machine or still to come.
pub(super) fn require_known(job_type: &JobType, settings: &Settings, known: &[String]) -> Result<(), Failure> {
    if known.iter().any(|name| name == job_type.as_str()) {
        return Ok(());
    }
    if let Err(NotServed::ServesOthers { file, types }) = JobTypes::read(&settings.plugins).serving(job_type.as_str()) {
        let others: Vec<_> = types.iter().map(|name| format!("`[jobs.{name}]`")).collect();
        let message = format!("nothing serves the type `{job_type}`: `{file}` is the plugin of {}", others.join(", "));
        let hint = format!(
            "add `[jobs.{job_type}]` to the settings, or enqueue `{}`; `--force` enqueues it anyway",
            types.join("` or `")
        );
        return Err(Failure::new(Code::NotFound, message).hint(hint));
    }
    let dir = std::path::absolute(&settings.plugins.dir).unwrap_or_else(|_| settings.plugins.dir.clone());
    let message = format!(
        "unknown job type `{job_type}`: neither `[jobs.{job_type}]` in the settings nor `{job_type}.wasm` in `{}`",
        dir.display()
    );
    let hint = match suggest::closest(job_type.as_str(), known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? `--force` enqueues it all the same"),
        None if settings.file.is_none() => {
            "there is no jobq.toml here: run this in the directory of the queue, or name it by `--config` or JOBQ_CONFIG".to_owned()
        }
        None => "`jobq plugin list` shows the types there are; `--force` enqueues it all the same".to_owned(),
    };
    Err(Failure::new(Code::NotFound, message).hint(hint))
}

/// The job that an id names; the beginning of an id will do where only one job's id begins with it.
pub(super) async fn job_id(store: &dyn Store, typed: &Id) -> anyhow::Result<Id> {
    match store.resolve(typed).await? {
        Resolved::Job(id) => Ok(id),
        Resolved::NotFound => Err(no_such_job(typed).into()),
        Resolved::Ambiguous(ids) => {
            let more = if ids.len() < Resolved::LISTED { "" } else { "\n…" };
            let ids: String = ids.iter().map(|id| format!("\n{}", cell(id.as_str(), 255))).collect();
            let message = format!("more than one job has an id that begins with `{typed}`:{ids}{more}");
            Err(Failure::usage(message).hint("give more of the id").into())
        }
    }
}

/// The error for an id that no job has.
pub(super) fn no_such_job(id: &Id) -> Failure {
    Failure::new(Code::NotFound, format!("no job has the id `{id}`")).hint("`jobq list` shows the ids there are")
}
