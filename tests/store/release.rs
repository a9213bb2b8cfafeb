//! Release: jobs whose guests never started.

use std::time::Duration;

use jobq::queue::{Job, Next, Outcome, Status};

use super::{Queue, failure, job, receipt};

#[tokio::test]
async fn a_released_job_has_no_trace_of_the_claim_but_its_token() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let id = queue.add(job("work")).await;
    let before = queue.job(&id).await;
    let claimed = queue.claim(1).await.remove(0);
    queue.store.release(vec![claimed.lease.clone()]).await.unwrap();
    assert_eq!(queue.job(&id).await, Job { lease: 1, ..before });
    assert_eq!(queue.outcomes(&id).await, []);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_released_job_keeps_its_earlier_attempts() {
    let queue = Queue::fresh();
    let first = queue.running().await;
    queue.store.fail(receipt(&first), failure(Next::Retry(Duration::ZERO))).await.unwrap();
    let before = queue.job(&first.id).await;
    let second = queue.claim(1).await.remove(0);
    queue.store.release(vec![second.lease.clone()]).await.unwrap();
    let stored = queue.job(&first.id).await;
    assert_eq!((stored.status, stored.attempts), (Status::Pending, 1));
    assert_eq!((stored.started_at, stored.error), (before.started_at, before.error));
    assert_eq!(queue.outcomes(&first.id).await, [Outcome::Failed]);
}

#[tokio::test]
async fn a_stale_lease_releases_nothing() {
    let queue = Queue::fresh();
    let stale = queue.in_state(Status::Completed).await;
    let before = queue.job(&stale.id).await;
    queue.store.release(vec![stale.lease.clone()]).await.unwrap();
    assert_eq!(queue.job(&stale.id).await, before);
}
