//! Priorities, a job for three in the morning, one function for two types, and a retry that succeeds.
//!
//! `cargo run --example process_files`

use std::sync::Arc;
use std::time::Duration;

use jobq::queue::sqlite::{OpenMode, QueueOptions as Database, SqliteStore};
use jobq::queue::{Backoff, Due, Filter, JobType, NewJob, Payload, RetryPolicy, Status, Store, Timestamp};
use jobq::worker::{JobError, JobTypeOptions, JobTypes, NativeHandlers, NativeJob, Pool, Setup, WorkerOptions};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(Database::new(dir.path().join("jobs.db")), OpenMode::Create)?);

    let csv = Payload::parse(r#"{"path": "/data/sales.csv", "format": "monthly"}"#.into(), 1 << 20)?;
    let report = Payload::parse(r#"{"type": "weekly", "format": "pdf"}"#.into(), 1 << 20)?;
    let urgent = NewJob { priority: 10, ..NewJob::new(JobType::parse("process_csv")?, csv) };
    let tonight = NewJob { due: Due::At(next_3_am()?), ..NewJob::new(JobType::parse("generate_report")?, report) };
    store.enqueue(vec![urgent, tonight]).await?;

    let handlers = NativeHandlers::new().on("process_csv", handle).on("generate_report", handle);
    let backoff = Backoff { base: Duration::from_millis(50), ..Backoff::default() };
    let type_options =
        JobTypeOptions { policy: RetryPolicy { backoff, ..RetryPolicy::default() }, ..JobTypeOptions::default() };
    let job_types = JobTypes { default: Arc::new(type_options), ..JobTypes::default() };
    let options = WorkerOptions { job_types, ..WorkerOptions::default() };
    let pool = Pool::start(Setup { store: store.clone(), handlers: Arc::new(handlers), options });
    while store.counts().await?.get(&Status::Completed) != Some(&1) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pool.stop(CancellationToken::new()).await;

    for job in store.list(Filter { status: None, job_type: None, limit: 10 }).await? {
        let attempts = store.attempts(&job.id).await?;
        println!("{} is {} after {} attempts, due {}", job.job_type, job.status, attempts.len(), job.scheduled_at);
    }
    store.close().await;
    Ok(())
}

/// One function for both types; the CSV succeeds at the second attempt.
async fn handle(job: NativeJob) -> Result<String, JobError> {
    match job.call.job_type.as_str() {
        "process_csv" if job.call.attempt == 1 => Err(JobError::Retry("the file is still being written".into())),
        "process_csv" => {
            job.progress(100, "all rows read");
            Ok(r#"{"rows": 338}"#.into())
        }
        "generate_report" => Ok("{}".into()),
        other => Err(JobError::Fatal(format!("unknown job type `{other}`"))),
    }
}

fn next_3_am() -> Result<Timestamp, jiff::Error> {
    let now = jiff::ZonedDateTime::now();
    let today = now.date().at(3, 0, 0, 0).to_zoned_datetime(now.time_zone().clone())?;
    let next = if today > now { today } else { today.tomorrow()? };
    Ok(Timestamp::from_millis(next.timestamp().as_millisecond()))
}
