//! `jobq demo`: a daemon with the plugins that ship, twenty jobs of every fate, and what became of them.
//!
//! `cast` says which jobs there are and how each must end, `stage` makes the directory, `table` tells what happened.

mod cast;
mod stage;
mod table;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::exit::{Code, Failure};
use super::log::LogArgs;
use super::output::{self, talk};
use crate::plugins::Registry;
use crate::queue::{self, Id, Job, OpenMode, QueueOptions, Status, Store, summary};
use crate::sandbox::{self, Sandbox};
use crate::worker::{PluginHandlers, Pool, Setup};

use cast::Role;
use stage::Stage;

/// How long the jobs may take, all together.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the progress is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It needs no settings and touches nothing but its own directory. Exit code 1 says that a job did not end as planned.

Examples:
  jobq demo";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) log: LogArgs,
}

pub(super) fn run(_: &Args, _: &Context) -> anyhow::Result<Code> {
    let stage = Stage::build().context("cannot make a directory for the demo")?;
    talk(format!("A fresh directory: {}", stage.dir().display()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ends = runtime.block_on(play(&stage))?;
    let surprises = ends.iter().filter(|end| !end.role.is_as_planned(&end.job)).count();
    stage.say_what_to_try();
    if surprises > 0 {
        let message = format!("{surprises} of {} jobs did not end as planned, see the last column", ends.len());
        return Err(Failure::new(Code::Unexpected, message).into());
    }
    Ok(Code::Ok)
}

/// A role and what became of it.
struct End {
    role: Role,
    job: Job,
    attempts: Vec<crate::queue::AttemptRecord>,
}

async fn play(stage: &Stage) -> anyhow::Result<Vec<End>> {
    let settings = stage.settings()?;
    let store = queue::open(QueueOptions::new(&settings.queue.database), OpenMode::Create)?;
    let options =
        sandbox::SandboxOptions { slots: settings.worker.concurrency.get(), max_memory: settings.max_memory() };
    let sandbox = Arc::new(Sandbox::new(options)?);
    let registry = Registry::start(settings.plugins.clone(), sandbox.clone())?;
    let handlers = Arc::new(PluginHandlers::new(sandbox, registry.clone()));
    let pool = Pool::start(Setup { store: store.clone(), handlers, options: settings.worker });
    talk("The daemon is ready; its plugins are compiled while their jobs wait.\n");

    let mut roles = Vec::new();
    for role in cast::all()? {
        let answers = store.enqueue(vec![role.job.clone()]).await?;
        let id = answers.first().context("the store did not answer")?.id().clone();
        if role.status == Status::Cancelled {
            store.cancel(&id).await?;
        }
        roles.push((id, role));
    }
    pool.waker().wake();
    watch(&*store, &roles).await?;
    pool.stop(CancellationToken::new()).await;

    let mut ends = Vec::new();
    for (id, role) in roles {
        let job = store.find(&id).await?.context("a job has vanished")?;
        ends.push(End { role, job, attempts: store.attempts(&id).await? });
    }
    output::print(&format!("{}\n\n{}", table::of(&ends), summary(&store.counts().await?)))?;
    store.close().await;
    Ok(ends)
}

/// Shows how far the jobs are until all have ended.
async fn watch(store: &dyn Store, roles: &[(Id, Role)]) -> anyhow::Result<()> {
    let terminal = std::io::stderr().is_terminal();
    let started = Instant::now();
    let mut last = String::new();
    loop {
        let counts = store.counts().await?;
        let line = summary(&counts);
        if line != last {
            let start = if terminal { "\r\x1b[K" } else { "" };
            let end = if terminal { "" } else { "\n" };
            let mut stderr = std::io::stderr().lock();
            _ = write!(stderr, "{start}{:5.1} s  {line}{end}", started.elapsed().as_secs_f64());
            _ = stderr.flush();
            last = line;
        }
        let ended: u64 = counts.iter().filter(|(status, _)| status.is_terminal()).map(|(_, count)| count).sum();
        if ended >= roles.len() as u64 || started.elapsed() > PATIENCE {
            talk(if terminal { "\n" } else { "" });
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}
