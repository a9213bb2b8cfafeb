//! The cost of a claim in a table with a million rows that it must not read (I8), compared with an empty table.
//!
//! `cargo bench --bench claim`, or `cargo bench --bench claim -- 100000` for fewer rows. The ratios count: they should be
//! below 1.5 on any machine.

use std::path::Path;
use std::time::{Duration, Instant};

use jobq::queue::sqlite::{Durability, FillerRows, OpenMode, QueueOptions, SqliteStore, fill};
use jobq::queue::{Claim, JobType, NewJob, Payload, Store, Want, WorkerName};

/// Jobs per claim.
const BATCH: usize = 64;

/// Measured claims of each kind. The median is reported.
const ROUNDS: usize = 200;

/// The other rows in the table.
const FILLERS: [(&str, Option<FillerRows>); 5] = [
    ("nothing else", None),
    ("finished", Some(FillerRows::Finished)),
    ("due in the future", Some(FillerRows::Future)),
    ("the same, all priorities", Some(FillerRows::FuturePriorities)),
    ("of a type not served", Some(FillerRows::Unserved)),
];

fn main() {
    let rows = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000_u32);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!(
        "{:<28} {:>14} {:>7} {:>14} {:>7}",
        format!("beside {rows} rows"),
        "claim, per job",
        "ratio",
        "finds nothing",
        "ratio"
    );
    let mut floor = None;
    for (name, kind) in FILLERS {
        let dir = tempfile::tempdir().expect("a directory");
        match kind {
            Some(kind) => fill(&options(dir.path()), kind, &job_type(), rows).expect("a queue with rows"),
            None => drop(SqliteStore::open(options(dir.path()), OpenMode::Create).expect("a queue")),
        }
        let (claim, nothing) = runtime.block_on(measure(dir.path()));
        let (claim_floor, nothing_floor) = *floor.get_or_insert((claim, nothing));
        let ratio = |time: Duration, floor: Duration| time.as_secs_f64() / floor.as_secs_f64();
        println!(
            "{name:<28} {claim:>14.1?} {:>7.2} {nothing:>14.1?} {:>7.2}",
            ratio(claim, claim_floor),
            ratio(nothing, nothing_floor)
        );
    }
}

fn options(dir: &Path) -> QueueOptions {
    QueueOptions { durability: Durability::Normal, ..QueueOptions::new(dir.join("jobq.db")) }
}

fn job_type() -> JobType {
    JobType::parse("noop").expect("a type")
}

/// The median time of one job in a claim that finds a full batch, and of a claim that finds nothing.
async fn measure(dir: &Path) -> (Duration, Duration) {
    let store = SqliteStore::open(options(dir), OpenMode::Existing).expect("the queue");
    let job_type = job_type();
    let payload = Payload::parse(format!("\"{}\"", "x".repeat(98)), 1000).expect("a payload");
    let claim = || Claim {
        wants: vec![Want { job_type: job_type.clone(), slots: BATCH, ahead: 0 }],
        slots: BATCH,
        lease: Duration::from_secs(60),
        worker: WorkerName::new("bench"),
    };
    let (mut full, mut empty) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let jobs =
            (0..BATCH).map(|n| NewJob { priority: n as i16 % 10, ..NewJob::new(job_type.clone(), payload.clone()) });
        store.enqueue(jobs.collect()).await.expect("enqueued");
        let started = Instant::now();
        let claims = store.claim(claim()).await.expect("claimed");
        full.push(started.elapsed() / BATCH as u32);
        assert_eq!(claims.jobs.len(), BATCH);
        let started = Instant::now();
        assert!(store.claim(claim()).await.expect("claimed").jobs.is_empty());
        empty.push(started.elapsed());
    }
    store.close().await;
    (median(full), median(empty))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
