//! `jobq bench types`: whether a type's slots are used as well beside another type that has just been quick and is idle.
//!
//! What a daemon knows of one type, such as how short its jobs are, must cost no other a thing.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::delivery::Delivery;
use super::load::Load;
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::progress::Progress;
use super::statistics::rate;
use super::workload::{Workload, filler};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output;
use crate::cli::parse::{duration, positive};
use crate::queue::{JobType, Store};
use crate::worker::{NativeHandlers, WorkerOptions};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Two things are measured, alone and beside a second type whose jobs have just been measured as
short and of which there are no more: how long naps take on a few slots, and how many jobs that
do nothing a second are done when another connection adds them, which nobody tells the pool of.
All handlers are functions, so that nothing but the scheduling is measured.

Examples:
  jobq bench types
  jobq bench types --poll-interval 1s --naps 40 -o json";

/// Jobs by which the second type is known to be short.
const SHORT: usize = 200;

/// Jobs that the other connection adds in one transaction.
const BATCH: usize = 100;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many naps
    #[arg(long, default_value = "20", value_parser = positive::<NonZeroUsize>)]
    naps: NonZeroUsize,
    /// How long each is
    #[arg(long, default_value = "100ms", value_parser = duration)]
    nap: Duration,
    /// How many jobs that do nothing
    #[arg(long, default_value = "10000", value_parser = positive::<NonZeroUsize>)]
    jobs: NonZeroUsize,
    /// Attempts at once
    #[arg(long, default_value = "2", value_parser = positive::<NonZeroU32>)]
    concurrency: NonZeroU32,
    /// How often the pool looks whether another connection wrote [default: as in the settings]
    #[arg(long, value_parser = duration)]
    poll_interval: Option<Duration>,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    /// What the naps take if no slot is ever free.
    ideal_s: f64,
    alone: Measurement,
    beside_a_short_type: Measurement,
    delivered_once: bool,
    settings: TypesSettings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct Measurement {
    naps_s: f64,
    /// Of the ideal: 1 is best, and more is worse.
    naps_ratio: f64,
    jobs_per_s: f64,
}

#[derive(Debug, Serialize)]
struct TypesSettings {
    naps: usize,
    nap_ms: u128,
    jobs: usize,
    concurrency: u32,
    poll_interval_ms: u128,
    durability: Durability,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let mut options = pool::options(&context.settings()?);
    options.concurrency = args.concurrency;
    options.poll_interval = args.poll_interval.unwrap_or(options.poll_interval).max(Duration::from_millis(1));
    options.max_poll_interval = options.max_poll_interval.max(options.poll_interval);
    let naps = u32::try_from(args.naps.get().div_ceil(args.concurrency.get() as usize)).unwrap_or(u32::MAX);
    let bench =
        Bench { args, options, nap: workload("nap")?, noop: workload("noop")?, ideal: args.nap.saturating_mul(naps) };
    let (report, deliveries) = args.workspace.run(async |workspace| bench.measure(&workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require(deliveries)?;
    Ok(Code::Ok)
}

/// A type whose handler is a function.
fn workload(name: &str) -> anyhow::Result<Workload> {
    Ok(Workload { job_type: JobType::parse(name)?, wasm: Vec::new(), payload: filler(2)? })
}

struct Bench<'a> {
    args: &'a Args,
    options: WorkerOptions,
    nap: Workload,
    noop: Workload,
    ideal: Duration,
}

impl Bench<'_> {
    async fn measure(&self, workspace: &Path) -> anyhow::Result<(Report, Vec<Delivery>)> {
        let machine = Machine::detect(workspace);
        let mut progress = Progress::on_stderr();
        progress.show("alone");
        let (alone, mut deliveries) = self.measure_one(None, workspace).await?;
        progress.show("beside a short type");
        let short = workload("short")?;
        let (beside_a_short_type, delivered) = self.measure_one(Some(&short), workspace).await?;
        deliveries.extend(delivered);
        let report = Report {
            ideal_s: self.ideal.as_secs_f64(),
            alone,
            beside_a_short_type,
            delivered_once: Delivery::all_once(&deliveries),
            settings: TypesSettings {
                naps: self.args.naps.get(),
                nap_ms: self.args.nap.as_millis(),
                jobs: self.args.jobs.get(),
                concurrency: self.options.concurrency.get(),
                poll_interval_ms: self.options.poll_interval.as_millis(),
                durability: self.args.durability,
            },
            machine,
        };
        Ok((report, deliveries))
    }

    async fn measure_one(
        &self,
        short: Option<&Workload>,
        workspace: &Path,
    ) -> anyhow::Result<(Measurement, Vec<Delivery>)> {
        let nap = self.args.nap;
        let mut handlers = NativeHandlers::new()
            .on("nap", move |_| async move {
                tokio::time::sleep(nap).await;
                Ok(String::new())
            })
            .on("noop", |_| async { Ok(String::new()) });
        if let Some(short) = short {
            handlers = handlers.on(short.job_type.as_str(), |_| async { Ok(String::new()) });
        }
        let bench_pool = BenchPool::start(workspace, self.args.durability, Arc::new(handlers), self.options.clone())?;
        if let Some(short) = short {
            self.time_enqueued_here(&bench_pool, short, SHORT).await?;
        }
        let naps = self.time_enqueued_here(&bench_pool, &self.nap, self.args.naps.get()).await?;
        let jobs = self.time_enqueued_elsewhere(&bench_pool).await?;
        let side = Measurement {
            naps_s: naps.as_secs_f64(),
            naps_ratio: naps.as_secs_f64() / self.ideal.as_secs_f64().max(f64::MIN_POSITIVE),
            jobs_per_s: rate(self.args.jobs.get() as u64, jobs),
        };
        let stopped = bench_pool.stop().await;
        let mut deliveries = Vec::new();
        for (workload, jobs) in [(&self.nap, self.args.naps), (&self.noop, self.args.jobs)] {
            deliveries.push(Delivery::check(&stopped.store, workload, jobs.get()).await?);
        }
        stopped.store.close().await;
        Ok((side, deliveries))
    }

    /// How long jobs take that are enqueued at once by the process of the pool.
    async fn time_enqueued_here(
        &self,
        bench_pool: &BenchPool,
        workload: &Workload,
        jobs: usize,
    ) -> anyhow::Result<Duration> {
        let (ended, started) = (bench_pool.pool.recorded(), Instant::now());
        bench_pool.store.enqueue((0..jobs).map(|_| workload.job()).collect()).await?;
        bench_pool.pool.waker().wake();
        bench_pool.await_ends(ended + jobs as u64).await?;
        Ok(started.elapsed())
    }

    /// How long the jobs that do nothing take when another connection adds them.
    async fn time_enqueued_elsewhere(&self, bench_pool: &BenchPool) -> anyhow::Result<Duration> {
        let foreign = Arc::new(pool::open(bench_pool.home(), self.args.durability)?);
        let batch = NonZeroUsize::new(BATCH).unwrap_or(NonZeroUsize::MIN);
        let load = Load { jobs: self.args.jobs, outstanding: NonZeroUsize::MIN, batch };
        let (ended, started) = (bench_pool.pool.recorded(), Instant::now());
        load.enqueue(&foreign, None, &self.noop).await?;
        bench_pool.await_ends(ended + self.args.jobs.get() as u64).await?;
        let took = started.elapsed();
        foreign.close().await;
        Ok(took)
    }
}

fn text(report: &Report) -> String {
    let Report { ideal_s, alone, beside_a_short_type: beside, settings, machine, .. } = report;
    format!(
        "{:>8.2} s for the naps alone, {:>8.2} s beside a short type; ideal is {ideal_s:.2} s\n\
         {:>8.0} jobs/s from another connection alone, {:>8.0} beside a short type\n\
         {} naps of {} ms and {} jobs that do nothing on {} slots, poll_interval {} ms, durability {}\n\
         {}\n\
         every job done exactly once: {}",
        alone.naps_s,
        beside.naps_s,
        alone.jobs_per_s,
        beside.jobs_per_s,
        settings.naps,
        settings.nap_ms,
        settings.jobs,
        settings.concurrency,
        settings.poll_interval_ms,
        settings.durability.word(),
        machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
