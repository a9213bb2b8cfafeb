//! effectum: a tokio worker and 256 clients in one process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use effectum::{Error, Job, JobRunner, Queue, RunningJob, Worker};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const CONCURRENCY: u16 = 64;

/// How often each job ran, by its number.
#[derive(Debug)]
struct Deliveries(Vec<AtomicU32>);

async fn noop(job: RunningJob, deliveries: Arc<Deliveries>) -> Result<(), Error> {
    let payload: String = job.json_payload()?;
    let number: usize = payload.trim_end_matches('x').parse().expect("a payload starts with its number");
    deliveries.0[number].fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [jobs, outstanding, dir, variant] = arguments.as_slice() else {
        return Err("usage: effectum-driver JOBS OUTSTANDING DIR as-shipped|wal".into());
    };
    let (jobs, outstanding): (usize, usize) = (jobs.parse()?, outstanding.parse()?);
    let file = Path::new(dir).join("effectum.db");
    if variant == "wal" {
        rusqlite::Connection::open(&file)?.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    }
    let queue = Arc::new(Queue::new(&file).await?);
    let deliveries = Arc::new(Deliveries((0..jobs).map(|_| AtomicU32::new(0)).collect()));
    let _worker = Worker::builder(&queue, deliveries.clone())
        .jobs([JobRunner::builder("noop", noop).build()])
        .max_concurrency(CONCURRENCY)
        .build()
        .await?;

    let started = Instant::now();
    enqueue(&queue, jobs, outstanding).await?;
    let seconds = loop {
        if deliveries.0.iter().all(|ran| ran.load(Ordering::Relaxed) > 0) && succeeded(&file)? == jobs {
            break started.elapsed().as_secs_f64();
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let once = deliveries.0.iter().all(|ran| ran.load(Ordering::Relaxed) == 1);
    let line = serde_json::json!({
        "peer": "effectum",
        "version": format!("effectum {}, SQLite {}", locked("effectum"), rusqlite::version()),
        "durability": format!("{}, synchronous=NORMAL", journal(&file)?),
        "jobs": jobs,
        "seconds": seconds,
        "jobs_per_s": jobs as f64 / seconds,
        "delivered_once": once,
        "notes": format!(
            "one process, {outstanding} tokio clients, 1 worker with max_concurrency {CONCURRENCY}; {}",
            if variant == "wal" { "the driver made the file WAL beforehand" } else { "as shipped" },
        ),
    });
    println!("{line}");
    // The worker has no more to do, and its tasks would only keep the process waiting.
    std::process::exit(0);
}

/// Enqueues all jobs, one a call, `outstanding` calls at once.
async fn enqueue(queue: &Arc<Queue>, jobs: usize, outstanding: usize) -> Outcome<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..outstanding)
        .map(|_| {
            let (queue, next) = (queue.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= jobs {
                        return Outcome::Ok(());
                    }
                    Job::builder("noop").json_payload(&format!("{number:x<98}"))?.add_to(&queue).await?;
                }
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(())
}

fn succeeded(file: &PathBuf) -> Outcome<usize> {
    let sql = "SELECT count(*) FROM jobs WHERE status = 'succeeded'";
    Ok(rusqlite::Connection::open(file)?.query_row(sql, [], |row| row.get(0))?)
}

fn journal(file: &PathBuf) -> Outcome<String> {
    let mode: String = rusqlite::Connection::open(file)?.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(if mode == "wal" { "WAL".into() } else { format!("rollback journal ({mode})") })
}

/// The version of a dependency that this driver was built with.
fn locked(package: &str) -> &'static str {
    let entry = include_str!("../Cargo.lock").split_once(&format!("name = \"{package}\"\nversion = \""));
    entry.and_then(|(_, rest)| rest.split('"').next()).unwrap_or("of unknown version")
}
