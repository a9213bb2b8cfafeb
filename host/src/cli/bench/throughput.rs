//! `jobq bench throughput`: N jobs that do nothing, through a fresh queue and the daemon's own pool.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::disk;
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output;
use crate::config::Settings;
use crate::plugins::Registry;
use crate::queue::sqlite::{self, OpenMode, SqliteStore, TableName};
use crate::queue::{Filter, JobType, NewJob, Payload, Status, Store};
use crate::sandbox::{self, Sandbox};
use crate::worker::{PluginHandlers, Pool, Setup, auto_concurrency};

/// A component whose handler returns at once (source: `tests/guests/wat/noop.wat`).
const NOOP: &[u8] = include_bytes!("../../../../tests/guests/noop.wasm");

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many jobs
    #[arg(long, default_value_t = 50_000)]
    jobs: usize,
    /// How many enqueues are under way at once, one job each
    #[arg(long, default_value_t = 256)]
    outstanding: usize,
    /// What an acknowledged enqueue survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    /// Bytes of each payload
    #[arg(long, default_value_t = 100)]
    payload_bytes: usize,
    /// Attempts at once [default: 4 x cores]
    #[arg(long)]
    concurrency: Option<NonZeroU32>,
    /// Where to make the queue; it is deleted afterwards. Choose the disk you want to measure
    #[arg(long, default_value = ".")]
    dir: PathBuf,
}

#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Durability {
    /// A power cut
    Full,
    /// A crash of the process
    Normal,
}

#[derive(Debug, Serialize)]
struct Report {
    jobs_per_s: f64,
    seconds: f64,
    enqueued_per_s: f64,
    delivered_once: bool,
    jobs: usize,
    outstanding: usize,
    durability: Durability,
    payload_bytes: usize,
    concurrency: u32,
    fsyncs_per_s: f64,
    cores: usize,
    load_before: Option<f64>,
    jobq: &'static str,
    sqlite: &'static str,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    if args.jobs == 0 || args.outstanding == 0 || args.payload_bytes < 8 {
        return Err(Failure::usage("expected at least 1 job, 1 outstanding, and payloads of 8 bytes").into());
    }
    let load_before = load();
    let home = tempfile::Builder::new()
        .prefix(".jobq-bench-")
        .tempdir_in(&args.dir)
        .with_context(|| format!("cannot make a directory in `{}`", args.dir.display()))?;
    let fsyncs_per_s = disk::syncs_per_second(home.path())?;
    let concurrency = args.concurrency.unwrap_or_else(auto_concurrency);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let run = runtime.block_on(measure(args, concurrency, home.path()))?;
    let report = Report {
        jobs_per_s: args.jobs as f64 / run.total.as_secs_f64(),
        seconds: run.total.as_secs_f64(),
        enqueued_per_s: args.jobs as f64 / run.enqueued.as_secs_f64(),
        delivered_once: run.delivered_once,
        jobs: args.jobs,
        outstanding: args.outstanding,
        durability: args.durability,
        payload_bytes: args.payload_bytes,
        concurrency: concurrency.get(),
        fsyncs_per_s,
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        load_before,
        jobq: env!("CARGO_PKG_VERSION"),
        sqlite: sqlite::version(),
    };
    output::one(context.format(), &report, || people(&report))?;
    ensure!(report.delivered_once, "some jobs did not complete exactly once");
    Ok(Code::Ok)
}

struct Run {
    enqueued: Duration,
    total: Duration,
    delivered_once: bool,
}

async fn measure(args: &Args, concurrency: NonZeroU32, home: &Path) -> anyhow::Result<Run> {
    let mut settings = settings(home)?;
    settings.worker.concurrency = concurrency;
    let durability = match args.durability {
        Durability::Full => sqlite::Durability::Full,
        Durability::Normal => sqlite::Durability::Normal,
    };
    let options =
        sqlite::Options { database: home.join("jobq.db"), table: TableName::default(), durability, patience: None };
    std::fs::create_dir_all(&settings.plugins.dir)?;
    std::fs::write(settings.plugins.dir.join("noop.wasm"), NOOP)?;
    let store = Arc::new(SqliteStore::open(options, OpenMode::Create)?);
    let sandbox =
        Arc::new(Sandbox::new(sandbox::Options { slots: concurrency.get(), max_memory: settings.max_memory() })?);
    let registry = Registry::start(settings.plugins.clone(), sandbox.clone())?;
    while registry.current("noop").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let handlers = Arc::new(PluginHandlers::new(sandbox, registry));
    let pool = Pool::start(Setup { store: store.clone(), handlers, options: settings.worker });
    let started = Instant::now();
    enqueue(args, &store, &pool).await?;
    let enqueued = started.elapsed();
    while pool.recorded() < args.jobs as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let total = started.elapsed();
    pool.stop(CancellationToken::new()).await;
    let delivered_once = delivered_once(&store, args.jobs).await?;
    store.close().await;
    Ok(Run { enqueued, total, delivered_once })
}

fn settings(home: &Path) -> anyhow::Result<Settings> {
    let nothing = crate::config::Environment::default();
    Ok(crate::config::check("", "bench", home, &nothing, &crate::config::Overrides::default())?)
}

/// Enqueues all jobs, one a call, `outstanding` calls at once.
async fn enqueue(args: &Args, store: &Arc<SqliteStore>, pool: &Pool) -> anyhow::Result<()> {
    let payload = Payload::parse(format!("\"{}\"", "x".repeat(args.payload_bytes - 2)), usize::MAX)?;
    let job_type = JobType::parse("noop")?;
    let left = Arc::new(AtomicUsize::new(args.jobs));
    let mut clients = JoinSet::new();
    for _ in 0..args.outstanding {
        let (store, left, waker) = (store.clone(), left.clone(), pool.waker());
        let (payload, job_type) = (payload.clone(), job_type.clone());
        clients.spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                store.enqueue(vec![NewJob::new(job_type.clone(), payload.clone())]).await?;
                waker.wake();
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

/// Whether every job is completed, was claimed once and counts one attempt.
async fn delivered_once(store: &SqliteStore, jobs: usize) -> anyhow::Result<bool> {
    let all = store.list(Filter { status: None, job_type: None, limit: jobs + 1 }).await?;
    let once = all.iter().all(|job| job.status == Status::Completed && job.attempts == 1);
    Ok(all.len() == jobs && once)
}

/// Jobs that want a core, averaged over the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

fn people(report: &Report) -> String {
    format!(
        "{:.0} jobs/s from enqueue to completed ({} jobs in {:.2} s, {} outstanding, durability {:?}, {} slots)\n\
         {:.0} fsyncs/s on this disk in the same run, {} cores, load {} before\n\
         every job completed exactly once: {}",
        report.jobs_per_s,
        report.jobs,
        report.seconds,
        report.outstanding,
        report.durability,
        report.concurrency,
        report.fsyncs_per_s,
        report.cores,
        report.load_before.map_or_else(|| "unknown".to_owned(), |load| load.to_string()),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
