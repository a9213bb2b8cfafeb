//! `jobq bench held`: many attempts that hold a lease at once, each a guest that sleeps in its own sandbox.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::delivery::Delivery;
use super::guests::Guests;
use super::instrumented::InstrumentedHandlers;
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::process_usage::{ProcessUsage, megabytes};
use super::progress::Progress;
use super::workload::Workload;
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output;
use crate::cli::parse::{duration, positive};
use crate::queue::{JobType, Payload, Store};
use crate::sandbox::Limits;
use crate::worker::{JobTypeOptions, WorkerOptions};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Every attempt sleeps for the time of --hold, which must be enough to start all of them. The memory
is that of this process, which is daemon and client in one. Exit code 1 says that not all were
held at once, or that one was not done exactly once.

Examples:
  jobq bench held
  jobq bench held --attempts 1000 --hold 5s -o json";

/// A component whose handler sleeps (source: `tests/guests/handlers/sleep.rs`).
const SLEEP: &[u8] = include_bytes!("../../../../tests/guests/sleep.wasm");

/// Jobs in one enqueue.
const BATCH: usize = 1000;

/// How often it is looked how many are there.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What a guest may take longer than it sleeps.
const SLACK: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many attempts
    #[arg(long, default_value = "10000", value_parser = positive::<NonZeroU32>)]
    attempts: NonZeroU32,
    /// How long each sleeps
    #[arg(long, default_value = "20s", value_parser = duration)]
    hold: Duration,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    /// The most that held a lease at once, each with its guest in the sandbox.
    held_at_once: u64,
    seconds_to_hold: f64,
    rss_before_mb: f64,
    peak_rss_mb: f64,
    delivered_once: bool,
    settings: HeldSettings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct HeldSettings {
    attempts: u32,
    hold_s: f64,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let mut options = pool::options(&context.settings()?);
    let workload = workload(args.hold)?;
    options.concurrency = args.attempts;
    let limits = Limits { timeout: args.hold.saturating_add(SLACK), ..Limits::default() };
    options
        .job_types
        .by_type
        .insert(workload.job_type.clone(), Arc::new(JobTypeOptions { limits, ..JobTypeOptions::default() }));
    let (report, delivery) =
        args.workspace.run(async |workspace| measure(args, &workload, &options, &workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require([delivery])?;
    if report.held_at_once < u64::from(args.attempts.get()) {
        let message = format!("only {} of {} attempts held a lease at once", report.held_at_once, args.attempts);
        return Err(Failure::new(Code::Unexpected, message).hint("`--hold` lets each last longer").into());
    }
    Ok(Code::Ok)
}

fn workload(hold: Duration) -> anyhow::Result<Workload> {
    let payload = Payload::parse(format!("{{\"ms\": {}}}", hold.as_millis()), 100)?;
    Ok(Workload { job_type: JobType::parse("sleep")?, wasm: SLEEP.to_vec(), payload })
}

async fn measure(
    args: &Args,
    workload: &Workload,
    options: &WorkerOptions,
    workspace: &Path,
) -> anyhow::Result<(Report, Delivery)> {
    let machine = Machine::detect(workspace);
    let guests = Guests::load(workspace, &[workload], options).await?;
    let instrumented = Arc::new(InstrumentedHandlers::of(workload, guests.handlers()));
    let bench_pool = BenchPool::start(workspace, Durability::Full, instrumented.clone(), options.clone())?;
    let (before, attempts, started) = (ProcessUsage::of_self()?, args.attempts.get() as usize, Instant::now());
    let mut jobs = (0..attempts).map(|_| workload.job()).peekable();
    while jobs.peek().is_some() {
        bench_pool.store.enqueue(jobs.by_ref().take(BATCH).collect()).await?;
        bench_pool.pool.waker().wake();
    }
    let mut progress = Progress::on_stderr();
    progress.show(&format!("{attempts} guests sleep for {:?}", args.hold));
    while instrumented.most_at_once() < attempts as u64 && bench_pool.pool.recorded() < attempts as u64 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let seconds_to_hold = started.elapsed().as_secs_f64();
    bench_pool.await_ends(attempts as u64).await?;
    let after = ProcessUsage::of_self()?;
    let stopped = bench_pool.stop().await;
    let delivery = Delivery::check(&stopped.store, workload, attempts).await?;
    stopped.store.close().await;
    let report = Report {
        held_at_once: instrumented.most_at_once(),
        seconds_to_hold,
        rss_before_mb: megabytes(before.rss),
        peak_rss_mb: megabytes(after.peak_rss),
        delivered_once: delivery.once(),
        settings: HeldSettings { attempts: args.attempts.get(), hold_s: args.hold.as_secs_f64() },
        machine,
    };
    Ok((report, delivery))
}

fn text(report: &Report) -> String {
    format!(
        "{:>8} attempts held a lease at once, after {:.2} s\n{:>8.1} MB of memory at most, {:.1} before\n\
         {} guests that sleep for {} s\n{}\nevery job done exactly once: {}",
        report.held_at_once,
        report.seconds_to_hold,
        report.peak_rss_mb,
        report.rss_before_mb,
        report.settings.attempts,
        report.settings.hold_s,
        report.machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
