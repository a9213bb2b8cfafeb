//! `jobq bench client`: one client that does one thing after the other, so that each waits for the disk.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::delivery::Delivery;
use super::disk;
use super::guests::Guests;
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::statistics::{median, rate};
use super::workload::{Workload, WorkloadArgs, WorkloadSummary};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output;
use crate::cli::parse::positive;
use crate::queue::Store;
use crate::queue::sqlite::SqliteStore;
use crate::worker::WorkerOptions;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Measures how many jobs a second one client enqueues, each acknowledged before the next, and how
many it has done, each enqueued, run and on record as completed before the next. Both wait for
the disk: what counts is their share of the fsyncs per second in the same run, for the whole job
divided by the commits that it needs.

Examples:
  jobq bench client
  jobq bench client --jobs 5000 --dir /var/lib/jobq -o json";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many jobs, of each kind
    #[arg(long, default_value = "2000", value_parser = positive::<NonZeroUsize>)]
    jobs: NonZeroUsize,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    enqueues_per_s: f64,
    /// Of the fsyncs per second.
    enqueue_ratio: f64,
    whole_jobs_per_s: f64,
    /// Of the fsyncs per second, divided by the commits of a job.
    whole_job_ratio: f64,
    commits_per_enqueue: f64,
    commits_per_job: f64,
    fsyncs_per_s: f64,
    delivered_once: bool,
    settings: ClientSettings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct ClientSettings {
    jobs: usize,
    durability: Durability,
    #[serde(flatten)]
    workload: WorkloadSummary,
}

/// A rate, and the commits that each took.
struct Paced {
    per_s: f64,
    commits: f64,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let workload = args.workload.read(&context.settings()?)?;
    let options = pool::options(&context.load_to_try(&workload.job_type)?);
    let (report, delivery) =
        args.workspace.run(async |workspace| measure(args, &workload, &options, &workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require([delivery])?;
    Ok(Code::Ok)
}

async fn measure(
    args: &Args,
    workload: &Workload,
    options: &WorkerOptions,
    workspace: &Path,
) -> anyhow::Result<(Report, Delivery)> {
    let machine = Machine::detect(workspace);
    let guests = Guests::load(workspace, &[workload], options).await?;
    guests.check_once(workload, options.job_types.of(workload.job_type.as_str())).await?;
    let jobs = args.jobs.get();

    let before = disk::syncs_per_second(workspace).await?;
    let home = pool::home(workspace)?;
    let store = pool::open(home.path(), args.durability)?;
    let enqueue = enqueue(&store, workload, jobs).await?;
    store.close().await;

    let between = disk::syncs_per_second(workspace).await?;
    let bench_pool = BenchPool::start(workspace, args.durability, guests.handlers(), options.clone())?;
    let whole = whole(&bench_pool, workload, jobs).await?;
    let stopped = bench_pool.stop().await;
    let delivery = Delivery::check(&stopped.store, workload, jobs).await?;
    stopped.store.close().await;

    let fsyncs_per_s = median([before, between, disk::syncs_per_second(workspace).await?]);
    let report = Report {
        enqueues_per_s: enqueue.per_s,
        enqueue_ratio: enqueue.per_s * enqueue.commits / fsyncs_per_s,
        whole_jobs_per_s: whole.per_s,
        whole_job_ratio: whole.per_s * whole.commits / fsyncs_per_s,
        commits_per_enqueue: enqueue.commits,
        commits_per_job: whole.commits,
        fsyncs_per_s,
        delivered_once: delivery.once(),
        settings: ClientSettings { jobs, durability: args.durability, workload: workload.summary() },
        machine,
    };
    Ok((report, delivery))
}

async fn enqueue(store: &SqliteStore, workload: &Workload, jobs: usize) -> anyhow::Result<Paced> {
    let (commits, started) = (store.commits(), Instant::now());
    for _ in 0..jobs {
        store.enqueue(vec![workload.job()]).await?;
    }
    Ok(paced(store, commits, started, jobs))
}

async fn whole(bench_pool: &BenchPool, workload: &Workload, jobs: usize) -> anyhow::Result<Paced> {
    let waker = bench_pool.pool.waker();
    let (commits, started) = (bench_pool.store.commits(), Instant::now());
    for done in 1..=jobs as u64 {
        bench_pool.store.enqueue(vec![workload.job()]).await?;
        waker.wake();
        bench_pool.pool.await_recorded(done).await;
    }
    Ok(paced(&bench_pool.store, commits, started, jobs))
}

fn paced(store: &SqliteStore, commits: u64, started: Instant, jobs: usize) -> Paced {
    let commits = store.commits() - commits;
    Paced { per_s: rate(jobs as u64, started.elapsed()), commits: commits as f64 / jobs as f64 }
}

fn text(report: &Report) -> String {
    let Report { settings, machine, .. } = report;
    format!(
        "{:>8.0} enqueues/s, {:.2} commits each: {:.0} % of what the disk allows\n\
         {:>8.0} whole jobs/s, {:.2} commits each: {:.0} % of what the disk allows\n\
         {:>8.0} fsyncs/s on this disk in the same run\n\
         {} jobs of `{}` of each kind, {} B payload, durability {}\n\
         {}\n\
         every job done exactly once: {}",
        report.enqueues_per_s,
        report.commits_per_enqueue,
        report.enqueue_ratio * 100.0,
        report.whole_jobs_per_s,
        report.commits_per_job,
        report.whole_job_ratio * 100.0,
        report.fsyncs_per_s,
        settings.jobs,
        settings.workload.plugin,
        settings.workload.payload_bytes,
        settings.durability.word(),
        machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
