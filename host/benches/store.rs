//! What the verbs of the store cost that every job needs: claim, complete, and keeping what a guest has logged.
//!
//! Each is measured for a batch that goes into one transaction, as under load, at `normal`: this is about the work, and
//! not about the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jobq::queue::sqlite::{Durability, OpenMode, QueueOptions, SqliteStore};
use jobq::queue::{
    Claim, Claimed, JobType, LogLine, LogSource, NewJob, Payload, Progress, Receipt, Store, Timestamp, Want, WorkerName,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Jobs of one transaction.
const BATCH: usize = 64;

/// Log lines of one attempt.
const LINES: usize = 10;

fn store(criterion: &mut Criterion) {
    let bench = Bench::new();
    let mut group = criterion.benchmark_group("store");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("enqueue", |b| b.iter_custom(|rounds| bench.rounds(rounds, Verb::Enqueue)));
    group.bench_function("claim", |b| b.iter_custom(|rounds| bench.rounds(rounds, Verb::Claim)));
    group.bench_function("complete", |b| b.iter_custom(|rounds| bench.rounds(rounds, Verb::Complete)));
    group.bench_function("log 10 lines", |b| b.iter_custom(|rounds| bench.rounds(rounds, Verb::Log)));
    group.finish();
}

/// The verb whose time counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Enqueue,
    Claim,
    Log,
    Complete,
}

struct Bench {
    store: Arc<SqliteStore>,
    runtime: Runtime,
    job_type: JobType,
    payload: Payload,
    _dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let options = QueueOptions { durability: Durability::Normal, ..QueueOptions::new(dir.path().join("jobq.db")) };
        Self {
            store: Arc::new(SqliteStore::open(options, OpenMode::Create).expect("a queue")),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
            job_type: JobType::parse("noop").expect("a type"),
            payload: Payload::parse(format!("\"{}\"", "x".repeat(98)), 1000).expect("a payload"),
            _dir: dir,
        }
    }

    /// The whole way of `rounds` batches, of which only the time of one verb counts.
    fn rounds(&self, rounds: u64, counted: Verb) -> Duration {
        let mut time = Duration::ZERO;
        self.runtime.block_on(async {
            for _ in 0..rounds {
                let mut clock = Clock { counted, time: &mut time };
                clock.on(Verb::Enqueue, self.enqueue()).await;
                let jobs = clock.on(Verb::Claim, self.claim()).await;
                if counted == Verb::Log {
                    clock.on(Verb::Log, self.log(&jobs)).await;
                }
                clock.on(Verb::Complete, self.complete(jobs)).await;
            }
        });
        time
    }

    async fn enqueue(&self) {
        let job = || NewJob::new(self.job_type.clone(), self.payload.clone());
        self.store.enqueue((0..BATCH).map(|_| job()).collect()).await.expect("enqueued");
    }

    async fn claim(&self) -> Vec<Claimed> {
        let wants = vec![Want { job_type: self.job_type.clone(), slots: BATCH, ahead: 0 }];
        let claim = Claim { wants, slots: BATCH, lease: Duration::from_secs(600), worker: WorkerName::new("bench") };
        let jobs = self.store.claim(claim).await.expect("claimed").jobs;
        assert_eq!(jobs.len(), BATCH);
        jobs
    }

    async fn log(&self, jobs: &[Claimed]) {
        let line = LogLine {
            attempt: 0,
            lease: 0,
            time: Timestamp::now(),
            source: LogSource::Log,
            level: Some("info"),
            message: "x".repeat(80),
        };
        let said =
            |job: &Claimed| Progress { lease: job.lease.clone(), lines: vec![line.clone(); LINES], progress: None };
        self.store.save_progress(jobs.iter().map(said).collect()).await.expect("recorded");
    }

    async fn complete(&self, jobs: Vec<Claimed>) {
        let mut ends = JoinSet::new();
        for job in jobs {
            let store = self.store.clone();
            ends.spawn(async move {
                let receipt = Receipt::of(&job, Duration::ZERO);
                store.complete(receipt, String::new(), Vec::new()).await.expect("completed");
            });
        }
        ends.join_all().await;
    }
}

struct Clock<'a> {
    counted: Verb,
    time: &'a mut Duration,
}

impl Clock<'_> {
    async fn on<T>(&mut self, verb: Verb, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        if verb == self.counted {
            *self.time += started.elapsed();
        }
        done
    }
}

criterion_group!(benches, store);
criterion_main!(benches);
