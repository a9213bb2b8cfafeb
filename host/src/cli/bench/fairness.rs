//! `jobq bench fairness`: one type with a looping guest in half of the slots, another type and the timers beside it.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::delivery::Delivery;
use super::guests::Guests;
use super::load::Load;
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::statistics::{Percentiles, rate};
use super::workload::{Workload, filler};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output;
use crate::queue::{JobType, Status, Store};
use crate::sandbox::Limits;
use crate::worker::{JobTypeOptions, WorkerOptions};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
The loops have half of the slots and never end by themselves; they are stopped when the other
jobs are done. A timer that was set for ten milliseconds tells how late the runtime is meanwhile:
shutdown, signals and leases wait as long.

Examples:
  jobq bench fairness
  jobq bench fairness --jobs 10000 -o json";

/// A component whose handler loops for ever (source: `tests/guests/wat/spin.wat`).
const SPIN: &[u8] = include_bytes!("../../../../tests/guests/spin.wasm");

/// How far ahead the timer is set whose lateness is measured.
const BEAT: Duration = Duration::from_millis(10);

/// How long the loops may take to begin.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    load: Load,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    alone: Measurement,
    beside_loops: Measurement,
    /// Of the throughput alone.
    ratio: f64,
    delivered_once: bool,
    settings: FairnessSettings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct Measurement {
    jobs_per_s: f64,
    timer_lateness: Percentiles,
}

#[derive(Debug, Serialize)]
struct FairnessSettings {
    jobs: usize,
    outstanding: usize,
    batch: usize,
    durability: Durability,
    concurrency: u32,
    loops: u32,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let mut options = pool::options(&context.settings()?);
    if options.concurrency.get() < 2 {
        return Err(Failure::usage("expected a worker.concurrency of 2 or more, of which the loops have half").into());
    }
    let spin = Workload { job_type: JobType::parse("spin")?, wasm: SPIN.to_vec(), payload: filler(2)? };
    let loops = options.concurrency.get() / 2;
    let limits = Limits { timeout: Duration::from_secs(86_400), fuel: Some(u64::MAX), ..Limits::default() };
    let type_options = JobTypeOptions { limits, concurrency: NonZeroU32::new(loops), ..JobTypeOptions::default() };
    options.job_types.by_type.insert(spin.job_type.clone(), Arc::new(type_options));
    let bench = Bench { args, spin, noop: Workload::noop(filler(100)?)?, loops, options };
    let (report, deliveries) = args.workspace.run(async |workspace| bench.measure(&workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require(deliveries)?;
    Ok(Code::Ok)
}

struct Bench<'a> {
    args: &'a Args,
    spin: Workload,
    noop: Workload,
    loops: u32,
    options: WorkerOptions,
}

impl Bench<'_> {
    async fn measure(&self, workspace: &Path) -> anyhow::Result<(Report, [Delivery; 2])> {
        let machine = Machine::detect(workspace);
        let guests = Guests::load(workspace, &[&self.spin, &self.noop], &self.options).await?;
        let (alone, delivery_alone) = self.measure_one(&guests, 0, workspace).await?;
        let (beside_loops, delivery_beside) = self.measure_one(&guests, self.loops, workspace).await?;
        let deliveries = [delivery_alone, delivery_beside];
        let Load { jobs, outstanding, batch } = self.args.load;
        let report = Report {
            ratio: beside_loops.jobs_per_s / alone.jobs_per_s,
            alone,
            beside_loops,
            delivered_once: Delivery::all_once(&deliveries),
            settings: FairnessSettings {
                jobs: jobs.get(),
                outstanding: outstanding.get(),
                batch: batch.get(),
                durability: self.args.durability,
                concurrency: self.options.concurrency.get(),
                loops: self.loops,
            },
            machine,
        };
        Ok((report, deliveries))
    }

    /// The throughput with so many loops beside it.
    async fn measure_one(
        &self,
        guests: &Guests,
        loops: u32,
        workspace: &Path,
    ) -> anyhow::Result<(Measurement, Delivery)> {
        let bench_pool = BenchPool::start(workspace, self.args.durability, guests.handlers(), self.options.clone())?;
        if loops > 0 {
            bench_pool.store.enqueue((0..loops).map(|_| self.spin.job()).collect()).await?;
            bench_pool.pool.waker().wake();
            await_loops(&bench_pool, loops).await?;
        }
        let timer = Timer::start();
        let result = self.args.load.drive(&bench_pool, &self.noop).await?;
        let timer_lateness = Percentiles::of(timer.stop().await?);
        let stopped = bench_pool.stop_at_once().await;
        let jobs = self.args.load.jobs.get();
        let delivery = Delivery::check(&stopped.store, &self.noop, jobs).await?;
        stopped.store.close().await;
        Ok((Measurement { jobs_per_s: rate(jobs as u64, result.total), timer_lateness }, delivery))
    }
}

/// Waits until all loops run.
async fn await_loops(bench_pool: &BenchPool, loops: u32) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let running = bench_pool.store.counts().await?.get(&Status::Running).copied().unwrap_or(0);
        if running >= u64::from(loops) {
            return Ok(());
        }
        if started.elapsed() > TIMEOUT {
            let message = format!("only {running} of {loops} loops began within {TIMEOUT:?}");
            return Err(Failure::new(Code::Unexpected, message).into());
        }
        tokio::time::sleep(BEAT).await;
    }
}

/// Sets a timer again and again, and notes how late each was.
struct Timer {
    task: tokio::task::JoinHandle<Vec<Duration>>,
    over: CancellationToken,
}

impl Timer {
    fn start() -> Self {
        let over = CancellationToken::new();
        let stop = over.clone();
        let task = tokio::spawn(async move {
            let mut late = Vec::new();
            while !stop.is_cancelled() {
                let set = Instant::now();
                tokio::time::sleep(BEAT).await;
                late.push(set.elapsed().saturating_sub(BEAT));
            }
            late
        });
        Self { task, over }
    }

    async fn stop(self) -> anyhow::Result<Vec<Duration>> {
        self.over.cancel();
        Ok(self.task.await?)
    }
}

fn text(report: &Report) -> String {
    let line = |measured: &Measurement| {
        let late = measured.timer_lateness;
        format!(
            "{:>8.0} jobs/s, timers late by {:.1} ms (p50), {:.1} ms (p99), {:.1} ms (max)",
            measured.jobs_per_s, late.p50_ms, late.p99_ms, late.max_ms
        )
    };
    format!(
        "{} alone\n{} beside {} loops in {} slots\n{:>8.0} % of the throughput alone\n\
         {} jobs that do nothing, {} outstanding, durability {}\n{}\nevery job done exactly once: {}",
        line(&report.alone),
        line(&report.beside_loops),
        report.settings.loops,
        report.settings.concurrency,
        report.ratio * 100.0,
        report.settings.jobs,
        report.settings.outstanding,
        report.settings.durability.word(),
        report.machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
