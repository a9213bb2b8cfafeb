//! `jobq demo`: runs a daemon with the shipped plugins and twenty jobs that end in every possible way.
//!
//! `jobs` lists the jobs and how each must end, `project` creates the directory, `table` prints the result.

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
use super::log::LogArgs;
use super::output::{self, Format, talk};
use crate::plugins::Registry;
use crate::queue::{self, Id, Job, OpenMode, QueueOptions, Status, Store, summary};
use crate::sandbox::{self, Sandbox};
use crate::worker::{PluginHandlers, Pool, Setup};

use jobs::DemoJob;
use project::DemoProject;

/// How long all jobs may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often to check the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It needs no settings and changes nothing outside its own directory. The exit code is 1 if a job did not end as expected.

Examples:
  jobq demo
  jobq demo -o ndjson | jq 'select(.as_expected | not)'";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) log: LogArgs,
}

pub(super) fn run(_: &Args, context: &Context) -> anyhow::Result<Code> {
    let project = DemoProject::create().context("cannot create a directory for the demo")?;
    talk(format!("A fresh directory: {}", project.dir().display()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let finished = runtime.block_on(run_jobs(&project, context.format()))?;
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

async fn run_jobs(project: &DemoProject, format: Format) -> anyhow::Result<Vec<FinishedJob>> {
    let settings = project.settings()?;
    let store = queue::open(QueueOptions::new(&settings.queue.database), OpenMode::Create)?;
    let options =
        sandbox::SandboxOptions { slots: settings.worker.concurrency.get(), max_memory: settings.max_memory() };
    let sandbox = Arc::new(Sandbox::new(options)?);
    let registry = Registry::start(settings.plugins.clone(), sandbox.clone())?;
    let handlers = Arc::new(PluginHandlers::new(sandbox, registry.clone()));
    let pool = Pool::start(Setup { store: store.clone(), handlers, options: settings.worker });
    talk("The daemon is ready. Jobs wait until their plugin is compiled.\n");

    let mut demo_jobs = Vec::new();
    for demo_job in jobs::all()? {
        let answers = store.enqueue(vec![demo_job.job.clone()]).await?;
        let id = answers.first().context("the store returned no answer")?.id().clone();
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
        let job = store.find(&id).await?.context("a job has disappeared")?;
        finished.push(FinishedJob { demo_job, job, attempts: store.attempts(&id).await? });
    }
    let counts = store.counts().await?;
    let objects: Vec<_> = finished.iter().map(table::object).collect();
    output::many(format, &objects, || format!("{}\n\n{}", table::of(&finished), summary(&counts)))?;
    store.close().await;
    Ok(finished)
}

/// Shows the progress until all jobs have ended.
async fn watch(store: &dyn Store, demo_jobs: &[(Id, DemoJob)]) -> anyhow::Result<()> {
    let is_terminal = std::io::stderr().is_terminal();
    let started = Instant::now();
    let mut last = String::new();
    loop {
        let counts = store.counts().await?;
        let line = summary(&counts);
        if line != last {
            let start = if is_terminal { "\r\x1b[K" } else { "" };
            let end = if is_terminal { "" } else { "\n" };
            let mut stderr = std::io::stderr().lock();
            _ = write!(stderr, "{start}{:5.1} s  {line}{end}", started.elapsed().as_secs_f64());
            _ = stderr.flush();
            last = line;
        }
        let ended: u64 = counts.iter().filter(|(status, _)| status.is_terminal()).map(|(_, count)| count).sum();
        if ended >= demo_jobs.len() as u64 || started.elapsed() > TIMEOUT {
            talk(if is_terminal { "\n" } else { "" });
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
