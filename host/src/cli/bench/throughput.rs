//! `jobq bench throughput`: jobs from enqueue to completed, through a fresh queue and the daemon's own pool,
//! beside the two floors that this is made of: the store without a sandbox, the sandbox without a store.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::delivery::Delivery;
use super::disk;
use super::guests::Guests;
use super::load::{Load, LoadResult};
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::progress::Progress;
use super::statistics::{median, rate};
use super::workload::{Workload, WorkloadArgs, WorkloadSummary, filler};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output::{self, Column};
use crate::cli::parse::positive;
use crate::worker::{Handlers, NativeHandlers, WorkerOptions};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Limits, grants and concurrency are those of jobq.toml, where there is one. Three things are
measured in turn: the store floor (the same queue and pool, with a native function that does
nothing for a handler), the sandbox floor (the handler without a queue), and the whole.
Exit code 1 says that a job was not done exactly once.

Examples:
  jobq bench throughput
  jobq bench throughput --all --dir /var/lib/jobq
  jobq bench throughput --outstanding 256 --durability full --jobs 50000 --runs 3 -o json
  jobq bench throughput --plugin plugins/send_email.wasm --payload @mail.json --jobs 1000";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    load: Load,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    #[command(flatten)]
    workload: WorkloadArgs,
    /// Attempts at once [default: as in the settings]
    #[arg(long, value_parser = positive::<NonZeroU32>)]
    concurrency: Option<NonZeroU32>,
    /// Measure so many times; the figures are medians
    #[arg(long, default_value = "1", value_parser = positive::<NonZeroUsize>)]
    runs: NonZeroUsize,
    /// Measure the usual combinations one after the other, and print a table or an array
    #[arg(long, conflicts_with_all = ["outstanding", "batch", "durability", "payload", "payload_bytes"])]
    all: bool,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// One combination.
struct Case {
    load: Load,
    durability: Durability,
    workload: Workload,
}

impl Case {
    fn describe(&self) -> String {
        let (Load { jobs, outstanding, batch }, durability) = (self.load, self.durability.word());
        format!("{jobs} jobs, {outstanding} outstanding, {batch} an enqueue, durability {durability}")
    }
}

#[derive(Debug, Serialize)]
struct Report {
    jobs_per_s: f64,
    store_floor_per_s: f64,
    sandbox_floor_per_s: f64,
    /// Of the slower floor.
    ratio_to_floor: f64,
    delivered_once: bool,
    enqueued_per_s: f64,
    commits_per_job: f64,
    fsyncs_per_s: f64,
    runs: Vec<Run>,
    settings: ThroughputSettings,
    machine: Machine,
}

/// What was asked for.
#[derive(Debug, Serialize)]
struct ThroughputSettings {
    jobs: usize,
    outstanding: usize,
    batch: usize,
    durability: Durability,
    #[serde(flatten)]
    workload: WorkloadSummary,
    concurrency: u32,
}

/// One time round: both floors and the whole.
#[derive(Debug, Serialize)]
struct Run {
    jobs_per_s: f64,
    store_floor_per_s: f64,
    sandbox_floor_per_s: f64,
    ratio_to_floor: f64,
    enqueued_per_s: f64,
    commits_per_job: f64,
    fsyncs_per_s: f64,
    #[serde(skip)]
    deliveries: [Delivery; 2],
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let workload = args.workload.read(&settings)?;
    let mut options = pool::options(&context.load_to_try(&workload.job_type)?);
    options.concurrency = args.concurrency.unwrap_or(options.concurrency);
    let cases = cases(args, workload)?;
    let reports = args.workspace.run(async |workspace| {
        let machine = Machine::detect(&workspace);
        let (mut reports, mut progress) = (Vec::new(), Progress::on_stderr());
        for case in &cases {
            progress.show(&case.describe());
            reports.push(measure(case, args.runs, &options, &workspace, machine.clone()).await?);
        }
        Ok(reports)
    })?;
    match &reports[..] {
        [report] if !args.all => output::one(context.format(), report, || text(report))?,
        reports => output::many(context.format(), reports, || table(reports))?,
    }
    Delivery::require(reports.into_iter().flat_map(|report| report.runs).flat_map(|run| run.deliveries))?;
    Ok(Code::Ok)
}

/// What is to be measured.
fn cases(args: &Args, workload: Workload) -> anyhow::Result<Vec<Case>> {
    let Args { load, durability, all, .. } = args;
    if !all {
        return Ok(vec![Case { load: *load, durability: *durability, workload }]);
    }
    let mut cases = Vec::new();
    let large = Workload { payload: filler(4096)?, ..workload.clone() };
    for durability in [Durability::Full, Durability::Normal] {
        for (outstanding, batch, workload) in
            [(1, 1, &workload), (16, 1, &workload), (256, 1, &workload), (16, 100, &workload), (256, 1, &large)]
        {
            let few = if outstanding == 1 { 10 } else { 1 };
            let number = |number: usize| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
            let (jobs, outstanding, batch) = (number(load.jobs.get() / few), number(outstanding), number(batch));
            cases.push(Case { load: Load { jobs, outstanding, batch }, durability, workload: workload.clone() });
        }
    }
    Ok(cases)
}

async fn measure(
    case: &Case,
    runs: NonZeroUsize,
    options: &WorkerOptions,
    workspace: &Path,
    machine: Machine,
) -> anyhow::Result<Report> {
    let guests = Guests::load(workspace, &[&case.workload], options).await?;
    guests.check_once(&case.workload, options.job_types.of(case.workload.job_type.as_str())).await?;
    let mut done = Vec::new();
    for _ in 0..runs.get() {
        done.push(round(case, &guests, options, workspace).await?);
    }
    let of = |figure: fn(&Run) -> f64| median(done.iter().map(figure));
    Ok(Report {
        jobs_per_s: of(|run| run.jobs_per_s),
        store_floor_per_s: of(|run| run.store_floor_per_s),
        sandbox_floor_per_s: of(|run| run.sandbox_floor_per_s),
        ratio_to_floor: of(|run| run.ratio_to_floor),
        delivered_once: done.iter().flat_map(|run| &run.deliveries).all(Delivery::once),
        enqueued_per_s: of(|run| run.enqueued_per_s),
        commits_per_job: of(|run| run.commits_per_job),
        fsyncs_per_s: of(|run| run.fsyncs_per_s),
        runs: done,
        settings: ThroughputSettings {
            jobs: case.load.jobs.get(),
            outstanding: case.load.outstanding.get(),
            batch: case.load.batch.get(),
            durability: case.durability,
            workload: case.workload.summary(),
            concurrency: options.concurrency.get(),
        },
        machine,
    })
}

async fn round(case: &Case, guests: &Guests, options: &WorkerOptions, workspace: &Path) -> anyhow::Result<Run> {
    let Case { load, workload, .. } = case;
    let jobs = load.jobs.get() as u64;
    let fsyncs_per_s = disk::syncs_per_second(workspace).await?;
    let native = NativeHandlers::new().on(workload.job_type.as_str(), |_| async { Ok(String::new()) });
    let (store, store_delivery) = through_a_queue(case, Arc::new(native), options, workspace).await?;
    let sandbox_floor_per_s = guests.floor(workload, options.job_types.of(workload.job_type.as_str()), jobs).await?;
    let (whole, delivery) = through_a_queue(case, guests.handlers(), options, workspace).await?;
    let (jobs_per_s, store_floor_per_s) = (rate(jobs, whole.total), rate(jobs, store.total));
    Ok(Run {
        jobs_per_s,
        store_floor_per_s,
        sandbox_floor_per_s,
        ratio_to_floor: jobs_per_s / store_floor_per_s.min(sandbox_floor_per_s),
        enqueued_per_s: rate(jobs, whole.enqueued),
        commits_per_job: whole.commits as f64 / jobs as f64,
        fsyncs_per_s,
        deliveries: [store_delivery, delivery],
    })
}

async fn through_a_queue(
    case: &Case,
    handlers: Arc<dyn Handlers>,
    options: &WorkerOptions,
    workspace: &Path,
) -> anyhow::Result<(LoadResult, Delivery)> {
    let bench_pool = BenchPool::start(workspace, case.durability, handlers, options.clone())?;
    let result = case.load.drive(&bench_pool, &case.workload).await?;
    let stopped = bench_pool.stop().await;
    let delivery = Delivery::check(&stopped.store, &case.workload, case.load.jobs.get()).await?;
    stopped.store.close().await;
    Ok((result, delivery))
}

fn text(report: &Report) -> String {
    let Report { settings, machine, .. } = report;
    let runs = if report.runs.len() > 1 { format!(", medians of {}", report.runs.len()) } else { String::new() };
    format!(
        "{:>8.0} jobs/s from enqueue to completed\n\
         {:>8.0} jobs/s store floor: a native handler that does nothing\n\
         {:>8.0} jobs/s sandbox floor: the handler without a queue\n\
         {:>8.0} % of the slower floor\n\
         {:>8.0} fsyncs/s on this disk in the same run, {:.3} commits a job\n\
         {} jobs of `{}`, {} B payload, {} outstanding, {} an enqueue, durability {}, {} slots{runs}\n\
         {}\n\
         every job done exactly once: {}",
        report.jobs_per_s,
        report.store_floor_per_s,
        report.sandbox_floor_per_s,
        report.ratio_to_floor * 100.0,
        report.fsyncs_per_s,
        report.commits_per_job,
        settings.jobs,
        settings.workload.plugin,
        settings.workload.payload_bytes,
        settings.outstanding,
        settings.batch,
        settings.durability.word(),
        settings.concurrency,
        machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}

fn table(reports: &[Report]) -> String {
    let columns = [
        Column::Whole("DURABILITY"),
        Column::Whole("OUTSTANDING"),
        Column::Whole("BATCH"),
        Column::Whole("PAYLOAD"),
        Column::Whole("JOBS/S"),
        Column::Whole("STORE"),
        Column::Whole("SANDBOX"),
        Column::Whole("RATIO"),
        Column::Whole("COMMITS/JOB"),
        Column::Whole("FSYNCS/S"),
        Column::Whole("ONCE"),
    ];
    let row = |report: &Report| {
        [
            report.settings.durability.word().to_owned(),
            report.settings.outstanding.to_string(),
            report.settings.batch.to_string(),
            report.settings.workload.payload_bytes.to_string(),
            format!("{:.0}", report.jobs_per_s),
            format!("{:.0}", report.store_floor_per_s),
            format!("{:.0}", report.sandbox_floor_per_s),
            format!("{:.2}", report.ratio_to_floor),
            format!("{:.3}", report.commits_per_job),
            format!("{:.0}", report.fsyncs_per_s),
            if report.delivered_once { "yes" } else { "NO" }.to_owned(),
        ]
    };
    let machine = reports.first().map_or_else(String::new, |report| report.machine.text());
    format!("{}\n\n{machine}", output::table(columns, reports.iter().map(row)))
}
