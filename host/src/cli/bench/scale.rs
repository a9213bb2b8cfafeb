//! `jobq bench scale`: whether a full table is as fast as an empty one.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;

use serde::Serialize;
use tempfile::TempDir;

use super::delivery::Delivery;
use super::guests::Guests;
use super::load::Load;
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::progress::Progress;
use super::statistics::{median, rate};
use super::workload::{Workload, filler};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output::{self, Column};
use crate::cli::parse::positive;
use crate::queue::sqlite::{FillerRows, SqliteStore, fill};
use crate::worker::WorkerOptions;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Measures the throughput of jobs that do nothing in an empty queue, and then beside rows that
should not matter: finished ones, ones due in a year, ones that nobody serves, and ones that wait.

Examples:
  jobq bench scale
  jobq bench scale --rows 100000 --runs 3 -o json";

/// What else lies in the queue.
const FILLERS: [(&str, Option<FillerRows>); 5] = [
    ("nothing", None),
    ("finished", Some(FillerRows::Finished)),
    ("future", Some(FillerRows::Future)),
    ("not_served", Some(FillerRows::Unserved)),
    ("waiting", Some(FillerRows::Waiting)),
];

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many rows there are besides
    #[arg(long, default_value = "1000000", value_parser = positive::<NonZeroU32>)]
    rows: NonZeroU32,
    #[command(flatten)]
    load: Load,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    /// Measure so many times; the figures are medians
    #[arg(long, default_value = "1", value_parser = positive::<NonZeroUsize>)]
    runs: NonZeroUsize,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    beside: Vec<Beside>,
    /// The lowest of the ratios.
    worst_ratio: f64,
    delivered_once: bool,
    settings: ScaleSettings,
    machine: Machine,
}

/// The throughput beside rows of one kind.
#[derive(Debug, Serialize)]
struct Beside {
    what: &'static str,
    rows: u32,
    jobs_per_s: f64,
    /// To the empty queue.
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct ScaleSettings {
    jobs: usize,
    outstanding: usize,
    batch: usize,
    durability: Durability,
    concurrency: u32,
    runs: usize,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let options = pool::options(&context.settings()?);
    let (report, deliveries) = args.workspace.run(async |workspace| measure(args, &options, &workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require(deliveries)?;
    Ok(Code::Ok)
}

async fn measure(args: &Args, options: &WorkerOptions, workspace: &Path) -> anyhow::Result<(Report, Vec<Delivery>)> {
    let machine = Machine::detect(workspace);
    let noop = Workload::noop(filler(100)?)?;
    let guests = Guests::load(workspace, &[&noop], options).await?;
    let (mut rates, mut deliveries) = (FILLERS.map(|_| Vec::new()), Vec::new());
    let mut progress = Progress::on_stderr();
    for run in 1..=args.runs.get() {
        for ((what, kind), rates) in FILLERS.iter().zip(&mut rates) {
            progress.show(&format!("run {run}: {} jobs beside {}", args.load.jobs, what.replace('_', " ")));
            let bench_pool = BenchPool::start_in(
                filled(*kind, args, &noop, workspace).await?,
                args.durability,
                guests.handlers(),
                options.clone(),
            )?;
            let result = args.load.drive(&bench_pool, &noop).await?;
            let stopped = bench_pool.stop().await;
            deliveries.push(delivery(&stopped.store, &noop, *kind, args).await?);
            stopped.store.close().await;
            rates.push(rate(args.load.jobs.get() as u64, result.total));
        }
    }
    Ok((report(args, options, rates, &deliveries, machine), deliveries))
}

/// A directory with a queue that is filled in this way.
async fn filled(kind: Option<FillerRows>, args: &Args, noop: &Workload, workspace: &Path) -> anyhow::Result<TempDir> {
    let home = pool::home(workspace)?;
    if let Some(kind) = kind {
        let (options, job_type) = (pool::store_options(home.path(), args.durability), noop.job_type.clone());
        let rows = args.rows.get();
        tokio::task::spawn_blocking(move || fill(&options, kind, &job_type, rows)).await??;
    }
    Ok(home)
}

fn report<const N: usize>(
    args: &Args,
    options: &WorkerOptions,
    rates: [Vec<f64>; N],
    deliveries: &[Delivery],
    machine: Machine,
) -> Report {
    let medians = rates.map(median);
    let empty = medians.first().copied().unwrap_or_default();
    let beside = FILLERS.iter().zip(medians).map(|((what, kind), jobs_per_s)| Beside {
        what,
        rows: kind.map_or(0, |_| args.rows.get()),
        jobs_per_s,
        ratio: jobs_per_s / empty,
    });
    let beside: Vec<_> = beside.collect();
    Report {
        worst_ratio: beside.iter().map(|beside| beside.ratio).fold(f64::INFINITY, f64::min),
        beside,
        delivered_once: Delivery::all_once(deliveries),
        settings: ScaleSettings {
            jobs: args.load.jobs.get(),
            outstanding: args.load.outstanding.get(),
            batch: args.load.batch.get(),
            durability: args.durability,
            concurrency: options.concurrency.get(),
            runs: args.runs.get(),
        },
        machine,
    }
}

/// Those that were finished before count as done; those that wait may be done or not, but never twice.
async fn delivery(
    store: &SqliteStore,
    noop: &Workload,
    kind: Option<FillerRows>,
    args: &Args,
) -> anyhow::Result<Delivery> {
    let (jobs, rows) = (args.load.jobs.get(), args.rows.get() as usize);
    let (all, done) = match kind {
        None | Some(FillerRows::Unserved) => (jobs, jobs),
        Some(FillerRows::Finished) => (jobs + rows, jobs + rows),
        Some(FillerRows::Future | FillerRows::FuturePriorities | FillerRows::Waiting) => (jobs + rows, jobs),
    };
    Delivery::check_some(store, noop, all, done).await
}

fn text(report: &Report) -> String {
    let columns = [Column::Whole("BESIDE"), Column::Whole("ROWS"), Column::Whole("JOBS/S"), Column::Whole("RATIO")];
    let row = |beside: &Beside| {
        [
            beside.what.replace('_', " "),
            beside.rows.to_string(),
            format!("{:.0}", beside.jobs_per_s),
            format!("{:.2}", beside.ratio),
        ]
    };
    let ScaleSettings { jobs, outstanding, batch, durability, concurrency, runs } = &report.settings;
    format!(
        "{}\n\n{jobs} jobs that do nothing, {outstanding} outstanding, {batch} an enqueue, durability {}, {concurrency} slots, medians of {runs}\n\
         {}\nevery job done exactly once: {}",
        output::table(columns, report.beside.iter().map(row)),
        durability.word(),
        report.machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
