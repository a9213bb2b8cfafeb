//! `jobq bench latency`: from enqueue to the first instruction of the handler, while idle, at half load and at full load,
//! enqueued by the daemon's own process and by another one.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::child_process::ChildProcess;
use super::delivery::Delivery;
use super::disk;
use super::guests::Guests;
use super::instrumented::{InstrumentedHandlers, timed_job, timed_workload};
use super::load::Load;
use super::machine::Machine;
use super::pool::{self, BenchPool, Durability};
use super::statistics::{Percentiles, rate};
use super::workload::{Workload, filler};
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{self, Column};
use crate::cli::parse::positive;
use crate::queue::Store;
use crate::queue::sqlite::rusqlite as sql;
use crate::worker::WorkerOptions;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
The clock starts before the job is enqueued and stops when its handler is heard for the first
time; in between are two commits, of the enqueue and of the claim; one, where a claim of the same
process stands by. At half load, jobs that do nothing come at half of the rate that the same pool
reached just before; at full load, as soon as others have ended. Another process inserts by plain
SQL, with a busy timeout of 5 s.

Examples:
  jobq bench latency
  jobq bench latency --samples 1000 -o json";

/// The pauses between two samples: of different length, so that they do not fall in step with anything.
const PAUSES: std::ops::Range<u64> = 10..60;

/// How the other process enqueues.
const INSERT: &str = "INSERT INTO jobs (type, payload) VALUES (?1, ?2)";

/// How long the other process waits for the database, as most libraries have it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the jobs of the load come.
const BEAT: Duration = Duration::from_millis(5);

/// Jobs of the load that have not ended, at full load.
const OUTSTANDING: usize = 256;

/// How long the last sample may take.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many jobs are timed, of each kind
    #[arg(long, default_value = "200", value_parser = positive::<NonZeroUsize>)]
    samples: NonZeroUsize,
    /// How many jobs tell what full load is
    #[arg(long, default_value = "20000", value_parser = positive::<NonZeroUsize>)]
    jobs: NonZeroUsize,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Arguments of the other process.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForeignWriterArgs {
    /// The directory of the queue
    home: PathBuf,
    durability: Durability,
    samples: usize,
}

#[derive(Debug, Serialize)]
struct Report {
    idle: Sources,
    half_load: Sources,
    full_load: Sources,
    /// What full load was.
    full_load_jobs_per_s: f64,
    /// What half load became.
    half_load_jobs_per_s: f64,
    /// What full load was while others wrote.
    shared_load_jobs_per_s: f64,
    commits_in_between: u32,
    fsync_ms: f64,
    fsyncs_per_s: f64,
    delivered_once: bool,
    settings: LatencySettings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct Sources {
    same_process: Percentiles,
    other_process: Percentiles,
}

#[derive(Debug, Serialize)]
struct LatencySettings {
    samples: usize,
    durability: Durability,
    concurrency: u32,
    poll_interval_ms: u128,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let options = pool::options(&context.settings()?);
    let (report, deliveries) = args.workspace.run(async |workspace| measure(args, &options, &workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Delivery::require(deliveries)?;
    Ok(Code::Ok)
}

/// The other process: enqueues timed jobs, one after the other.
pub(in crate::cli) fn run_foreign_writer(args: &ForeignWriterArgs, context: &Context) -> anyhow::Result<Code> {
    let foreign = sql::Connection::open(args.home.join(pool::DATABASE))?;
    foreign.busy_timeout(BUSY_TIMEOUT)?;
    foreign.pragma_update(None, "synchronous", args.durability.word())?;
    context.block_on(async {
        for _ in 0..args.samples {
            pause().await;
            let job = timed_job()?;
            foreign.execute(INSERT, (job.job_type.as_str(), job.payload.as_str()))?;
        }
        Ok(Code::Ok)
    })
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(PAUSES))).await;
}

async fn measure(args: &Args, options: &WorkerOptions, workspace: &Path) -> anyhow::Result<(Report, Vec<Delivery>)> {
    let machine = Machine::detect(workspace);
    let fsyncs_per_s = disk::syncs_per_second(workspace).await?;
    let (timed, noop) = (timed_workload()?, Workload::noop(filler(100)?)?);
    let guests = Guests::load(workspace, &[&timed, &noop], options).await?;
    let instrumented = Arc::new(InstrumentedHandlers::of(&timed, guests.handlers()));
    let bench_pool = BenchPool::start(workspace, args.durability, instrumented.clone(), options.clone())?;
    let bench = Bench { args, instrumented, bench_pool: &bench_pool };

    let idle = bench.sources().await?;
    let load = Load { jobs: args.jobs, outstanding: NonZeroUsize::MIN.saturating_add(255), batch: NonZeroUsize::MIN };
    let full_load_jobs_per_s = rate(args.jobs.get() as u64, load.drive(&bench_pool, &noop).await?.total);
    let half = Rate::PerSecond(full_load_jobs_per_s / 2.0);
    let (half_load, half) = beside(&bench_pool, &noop, half, bench.sources()).await?;
    bench_pool.await_ends((args.jobs.get() + half.jobs + 4 * args.samples.get()) as u64).await?;
    let (full_load, full) = beside(&bench_pool, &noop, Rate::Outstanding(OUTSTANDING), bench.sources()).await?;

    let (samples, fed) = (args.samples.get(), args.jobs.get() + half.jobs + full.jobs);
    bench_pool.await_ends((fed + 6 * samples) as u64).await?;
    let stopped = bench_pool.stop().await;
    let deliveries = vec![
        Delivery::check(&stopped.store, &noop, fed).await?,
        Delivery::check(&stopped.store, &timed, 6 * samples).await?,
    ];
    stopped.store.close().await;
    let report = Report {
        idle,
        half_load,
        full_load,
        full_load_jobs_per_s,
        half_load_jobs_per_s: half.per_s,
        shared_load_jobs_per_s: full.per_s,
        commits_in_between: 2,
        fsync_ms: 1e3 / fsyncs_per_s,
        fsyncs_per_s,
        delivered_once: Delivery::all_once(&deliveries),
        settings: LatencySettings {
            samples,
            durability: args.durability,
            concurrency: options.concurrency.get(),
            poll_interval_ms: options.poll_interval.as_millis(),
        },
        machine,
    };
    Ok((report, deliveries))
}

struct Bench<'a> {
    args: &'a Args,
    instrumented: Arc<InstrumentedHandlers>,
    bench_pool: &'a BenchPool,
}

impl Bench<'_> {
    async fn sources(&self) -> anyhow::Result<Sources> {
        Ok(Sources { same_process: self.same_process().await?, other_process: self.other_process().await? })
    }

    async fn same_process(&self) -> anyhow::Result<Percentiles> {
        let waker = self.bench_pool.pool.waker();
        for _ in 0..self.args.samples.get() {
            pause().await;
            self.bench_pool.store.enqueue(vec![timed_job()?]).await?;
            waker.wake();
        }
        self.collect().await
    }

    async fn other_process(&self) -> anyhow::Result<Percentiles> {
        let (home, samples) = (self.bench_pool.home().canonicalize()?, self.args.samples.to_string());
        let home = home.display().to_string();
        let args = ["bench", "foreign-writer", &home, self.args.durability.word(), &samples];
        ChildProcess::start(self.bench_pool.home(), &args)?.end().await?;
        self.collect().await
    }

    /// All samples of one kind, once the last is there.
    async fn collect(&self) -> anyhow::Result<Percentiles> {
        let (wanted, started) = (self.args.samples.get(), Instant::now());
        while self.instrumented.timed() < wanted {
            if started.elapsed() > TIMEOUT {
                let message = format!("only {} of {wanted} handlers were heard", self.instrumented.timed());
                return Err(Failure::new(Code::Unexpected, message).into());
            }
            tokio::time::sleep(BEAT).await;
        }
        Ok(Percentiles::of(self.instrumented.take_times()))
    }
}

/// How many jobs the load is.
#[derive(Clone, Copy)]
enum Rate {
    PerSecond(f64),
    /// So many that have not ended.
    Outstanding(usize),
}

/// What was enqueued meanwhile, in all and per second.
struct Fed {
    jobs: usize,
    per_s: f64,
}

/// Enqueues jobs for as long as `work` takes.
async fn beside<T>(
    bench_pool: &BenchPool,
    workload: &Workload,
    load: Rate,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(T, Fed)> {
    let (over, started) = (CancellationToken::new(), Instant::now());
    let work = async {
        let done = work.await;
        over.cancel();
        done
    };
    let (done, jobs) = tokio::join!(work, feed(bench_pool, workload, load, &over));
    let jobs = jobs?;
    Ok((done?, Fed { jobs, per_s: rate(jobs as u64, started.elapsed()) }))
}

/// Enqueues jobs until it is over, and tells how many.
async fn feed(
    bench_pool: &BenchPool,
    workload: &Workload,
    load: Rate,
    over: &CancellationToken,
) -> anyhow::Result<usize> {
    let (waker, before, started) = (bench_pool.pool.waker(), bench_pool.pool.recorded(), Instant::now());
    let mut beat = tokio::time::interval(BEAT);
    let mut fed = 0_usize;
    while !over.is_cancelled() {
        let due = match load {
            Rate::PerSecond(per_s) => {
                beat.tick().await;
                (started.elapsed().as_secs_f64() * per_s) as usize
            }
            Rate::Outstanding(most) => {
                bench_pool.pool.await_recorded(before + fed.saturating_sub(most / 2) as u64).await;
                most + usize::try_from(bench_pool.pool.recorded() - before)?
            }
        };
        let jobs: Vec<_> = (fed..due).map(|_| workload.job()).collect();
        fed = fed.max(due);
        if !jobs.is_empty() {
            bench_pool.store.enqueue(jobs).await?;
            waker.wake();
        }
    }
    Ok(fed)
}

fn text(report: &Report) -> String {
    let columns = [
        Column::Whole("LOAD"),
        Column::Whole("ENQUEUED BY"),
        Column::Whole("P50"),
        Column::Whole("P99"),
        Column::Whole("MAX"),
    ];
    let ms = |ms: f64| format!("{ms:.2} ms");
    let row = |load: &str, source: &str, spread: &Percentiles| {
        [load.to_owned(), source.to_owned(), ms(spread.p50_ms), ms(spread.p99_ms), ms(spread.max_ms)]
    };
    let rows = [
        row("idle", "the same process", &report.idle.same_process),
        row("idle", "another process", &report.idle.other_process),
        row("half", "the same process", &report.half_load.same_process),
        row("half", "another process", &report.half_load.other_process),
        row("full", "the same process", &report.full_load.same_process),
        row("full", "another process", &report.full_load.other_process),
    ];
    format!(
        "{}\n\nfrom enqueue to the first instruction of the handler, {} samples of each kind, durability {}\n\
         at most {} commits in between, of {:.2} ms each on this disk; half load {:.0} jobs/s of {:.0}, {:.0} while others write\n\
         {}\nevery job done exactly once: {}",
        output::table(columns, rows),
        report.settings.samples,
        report.settings.durability.word(),
        report.commits_in_between,
        report.fsync_ms,
        report.half_load_jobs_per_s,
        report.full_load_jobs_per_s,
        report.shared_load_jobs_per_s,
        report.machine.text(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
