//! `jobq demo`: a daemon with the plugins that ship, twenty jobs of every fate, and what became of them.
//!
//! `cast` says which jobs there are and how each must end, `project` makes the directory, `table` tells what happened.

mod jobs;
mod project;
mod table;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::exit::{Code, Failure};
use super::output::{self, talk};
use crate::plugins::Registry;
use crate::queue::{self, Id, Job, OpenMode, QueueOptions, Status, Store, summary};
use crate::sandbox::{self, Sandbox};
use crate::worker::{PluginHandlers, Pool, Setup};

use jobs::DemoJob;
use project::DemoProject;

/// How long the jobs may take, all together.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often the progress is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It needs no settings and touches nothing but its own directory. Exit code 1 says that a job did not end as expected.

Examples:
  jobq demo";

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, _: &Context) -> anyhow::Result<Code> {
    let project = DemoProject::build().context("cannot make a directory for the demo")?;
    talk(format!("A fresh directory: {}", project.dir().display()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let finished = runtime.block_on(run_jobs(&project))?;
    let unexpected = finished.iter().filter(|end| !end.demo_job.ended_as_expected(&end.job)).count();
    project.print_next_steps();
    if unexpected > 0 {
        let message = format!("{unexpected} of {} jobs did not end as expected, see the last column", finished.len());
        return Err(Failure::new(Code::Unexpected, message).into());
    }
    Ok(Code::Ok)
}

/// A demo_job and what became of it.
struct FinishedJob {
    demo_job: DemoJob,
    job: Job,
    attempts: Vec<crate::queue::AttemptRecord>,
}

async fn run_jobs(project: &DemoProject) -> anyhow::Result<Vec<FinishedJob>> {
    let settings = project.settings()?;
    let store = queue::open(QueueOptions::new(&settings.queue.database), OpenMode::Create)?;
    let options =
        sandbox::SandboxOptions { slots: settings.worker.concurrency.get(), max_memory: settings.max_memory() };
    let sandbox = Arc::new(Sandbox::new(options)?);
    let registry = Registry::start(settings.plugins.clone(), sandbox.clone())?;
    let handlers = Arc::new(PluginHandlers::new(sandbox, registry.clone()));
    let pool = Pool::start(Setup { store: store.clone(), handlers, options: settings.worker });
    talk("The daemon is ready; its plugins are compiled while their jobs wait.\n");

    let mut demo_jobs = Vec::new();
    for demo_job in jobs::all()? {
        let answers = store.enqueue(vec![demo_job.job.clone()]).await?;
        let id = answers.first().context("the store did not answer")?.id().clone();
        if demo_job.status == Status::Cancelled {
            store.cancel(&id).await?;
        }
        demo_jobs.push((id, demo_job));
    }
    pool.waker().wake();
    watch(&*store, &demo_jobs).await?;
    pool.stop(CancellationToken::new()).await;

    let mut finished = Vec::new();
    for (id, demo_job) in demo_jobs {
        let job = store.find(&id).await?.context("a job has vanished")?;
        finished.push(FinishedJob { demo_job, job, attempts: store.attempts(&id).await? });
    }
    output::print(&format!("{}\n\n{}", table::of(&finished), summary(&store.counts().await?)))?;
    store.close().await;
    Ok(finished)
}

/// Shows how far the jobs are until all have ended.
async fn watch(store: &dyn Store, demo_jobs: &[(Id, DemoJob)]) -> anyhow::Result<()> {
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
        if ended >= demo_jobs.len() as u64 || started.elapsed() > TIMEOUT {
            talk(if terminal { "\n" } else { "" });
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
