//! The status line, dead letters, and deletion of old jobs.
//!
//! `cargo run --example monitor`

use std::sync::Arc;
use std::time::Duration;

use jobq::queue::sqlite::{OpenMode, QueueOptions, SqliteStore};
use jobq::queue::{
    AttemptFailure, Claim, Filter, JobType, NewJob, Next, Outcome, Payload, Receipt, Retention, RetryPolicies, Status,
    Store, Want, WorkerName, summary,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(QueueOptions::new(dir.path().join("jobs.db")), OpenMode::Create)?;
    let job_type = JobType::parse("send_email")?;
    let jobs = (0..12).map(|n| Ok(NewJob::new(job_type.clone(), Payload::parse(format!("{n}"), 100)?)));
    store.enqueue(jobs.collect::<Result<_, jobq::queue::PayloadError>>()?).await?;

    // A worker without a pool: claim, then complete or fail under the lease.
    let wants = vec![Want { job_type, slots: 5, ahead: 0 }];
    let lease = Duration::from_secs(15);
    for job in store.claim(Claim { wants, slots: 5, lease, worker: WorkerName::new("by hand") }).await?.jobs {
        let receipt = Receipt::of(&job, Duration::from_millis(3));
        if job.payload.as_deref() == Ok("3") {
            let failure =
                AttemptFailure { outcome: Outcome::Failed, error: "no such mailbox".into(), next: Next::Dead };
            store.fail(receipt, failure).await?;
        } else {
            store.complete(receipt, "{}".into(), Vec::new()).await?;
        }
    }
    println!("{}", summary(&store.counts().await?));

    // List the dead letters and retry them.
    let dead = Filter { status: Some(Status::Dead), job_type: None, limit: 50 };
    for job in store.list(dead).await? {
        println!("{} died: {}", job.id, job.error.unwrap_or_default());
        store.retry(&job.id, Arc::new(RetryPolicies::default())).await?;
    }
    println!("{}", summary(&store.counts().await?));

    // Delete finished jobs after their retention time, here at once.
    let age = Some(Duration::ZERO);
    let pruned = store.prune(Retention { completed: age, cancelled: age, dead: age }, 500).await?;
    println!("deleted {} old jobs", pruned.deleted);
    store.close().await;
    Ok(())
}
