//! `jobq bench memory`: what a daemon holds while it is idle, and the most it held at full load.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::daemon_dir::{DaemonDir, SHIPPED, shipped};
use super::delivery::Delivery;
use super::load::Load;
use super::machine::Machine;
use super::pool::{self, Durability};
use super::process_usage::megabytes;
use super::statistics::rate;
use super::workload::{Workload, filler};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output;
use crate::queue::sqlite::SqliteStore;
use crate::queue::{Status, Store};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Starts a daemon with the default settings and three plugins in a process of its own, looks at its
memory, and gives it as many jobs as it can do, of another plugin that does nothing.

Examples:
  jobq bench memory
  jobq bench memory --jobs 200000 -o json";

/// After its start a daemon announces itself and settles down.
const SETTLE: Duration = Duration::from_secs(2);

/// How often it is looked whether the jobs have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// If no job ends for so long, none will.
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    idle_rss_mb: f64,
    /// The most it held since its start.
    load_rss_mb: f64,
    jobs_per_s: f64,
    delivered_once: bool,
    settings: MemorySettings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct MemorySettings {
    plugins: usize,
    jobs: usize,
    outstanding: usize,
    batch: usize,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let (report, delivery) = args.workspace.run(async |workspace| measure(args, &workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require([delivery])?;
    Ok(Code::Ok)
}

async fn measure(args: &Args, workspace: &Path) -> anyhow::Result<(Report, Delivery)> {
    let machine = Machine::detect(workspace);
    let noop = Workload::noop(filler(100)?)?;
    let mut plugins = shipped();
    plugins.push((noop.job_type.to_string(), noop.wasm.clone()));
    let home = DaemonDir::create(workspace, "daemon", &plugins).await?;
    let daemon = home.start_cached().await?;
    tokio::time::sleep(SETTLE).await;
    let idle = daemon.usage()?;

    let store = Arc::new(pool::open(home.dir(), Durability::Full)?);
    let (jobs, started) = (args.load.jobs.get(), Instant::now());
    args.load.enqueue(&store, None, &noop).await?;
    await_completions(&store, jobs as u64).await?;
    let jobs_per_s = rate(jobs as u64, started.elapsed());
    let load = daemon.usage()?;
    daemon.stop().await?;
    let delivery = Delivery::check(&store, &noop, jobs).await?;
    store.close().await;
    let report = Report {
        idle_rss_mb: megabytes(idle.rss),
        load_rss_mb: megabytes(load.peak_rss),
        jobs_per_s,
        delivered_once: delivery.once(),
        settings: MemorySettings {
            plugins: SHIPPED + 1,
            jobs,
            outstanding: args.load.outstanding.get(),
            batch: args.load.batch.get(),
        },
        machine,
    };
    Ok((report, delivery))
}

/// Waits until so many jobs have ended.
async fn await_completions(store: &SqliteStore, jobs: u64) -> anyhow::Result<()> {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        let counts = store.counts().await?;
        let ended = Status::ALL.into_iter().filter(|status| status.is_terminal());
        let ended = ended.filter_map(|status| counts.get(&status)).sum();
        if ended >= jobs {
            return Ok(());
        }
        if ended != seen {
            (seen, since) = (ended, Instant::now());
        }
        if since.elapsed() > TIMEOUT {
            let message = format!("only {ended} of {jobs} jobs ended, and none for {TIMEOUT:?}");
            return Err(Failure::new(Code::Unexpected, message).into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn text(report: &Report) -> String {
    let Report { settings, machine, .. } = report;
    format!(
        "{:>8.1} MB idle\n{:>8.1} MB at most, at {:.0} jobs/s\n\
         a daemon with {} plugins, and {} jobs that do nothing from another process, {} outstanding\n{}\n\
         every job done exactly once: {}",
        report.idle_rss_mb,
        report.load_rss_mb,
        report.jobs_per_s,
        settings.plugins,
        settings.jobs,
        settings.outstanding,
        machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
