//! Fail.

use std::time::Duration;

use jobq::queue::{AttemptFailure, AttemptWrite, Next, Outcome, Status, Timestamp};

use super::{DAY, Queue, failure, is_since, receipt};

#[tokio::test]
async fn a_failed_attempt_counts_and_is_retried_later() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let claimed = queue.running().await;
    let start = Timestamp::now();
    assert_eq!(queue.store.fail(receipt(&claimed), failure(Next::Retry(DAY))).await.unwrap(), AttemptWrite::Done);
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.status, stored.attempts, stored.error.as_deref()), (Status::Failed, 1, Some("no luck")));
    assert!(is_since(stored.scheduled_at.before(DAY), start));
    assert_eq!((stored.completed_at, stored.lease_until, stored.result), (None, None, None));
    let entry = queue.store.attempts(&claimed.id).await.unwrap().remove(0);
    assert_eq!((entry.attempt, entry.outcome, entry.error.as_deref()), (1, Outcome::Failed, Some("no luck")));
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_final_failure_makes_a_job_dead() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let claimed = queue.running().await;
    let scheduled_at = queue.job(&claimed.id).await.scheduled_at;
    let start = Timestamp::now();
    queue.store.fail(receipt(&claimed), failure(Next::Dead)).await.unwrap();
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.status, stored.attempts, stored.error.as_deref()), (Status::Dead, 1, Some("no luck")));
    assert!(is_since(stored.completed_at.unwrap(), start));
    assert_eq!((stored.scheduled_at, stored.lease_until), (scheduled_at, None));
    assert!(queue.claim(1).await.is_empty());
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn the_attempt_has_the_outcome_and_the_error() {
    for outcome in Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure()) {
        let queue = Queue::fresh();
        let claimed = queue.running().await;
        let failure = AttemptFailure { outcome, ..failure(Next::Dead) };
        queue.store.fail(receipt(&claimed), failure).await.unwrap();
        assert_eq!(queue.outcomes(&claimed.id).await, [outcome]);
    }
}

#[tokio::test]
async fn a_stale_lease_fails_nothing() {
    let queue = Queue::fresh();
    let stale = queue.running().await;
    queue.store.complete(receipt(&stale), String::new(), vec![]).await.unwrap();
    let before = queue.job(&stale.id).await;
    assert_eq!(queue.store.fail(receipt(&stale), failure(Next::Dead)).await.unwrap(), AttemptWrite::LeaseLost);
    assert_eq!(queue.job(&stale.id).await, before);
    assert_eq!(queue.outcomes(&stale.id).await, [Outcome::Completed]);
}

#[tokio::test]
async fn a_retry_delay_is_at_most_366_days() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    queue.store.fail(receipt(&claimed), failure(Next::Retry(Duration::MAX))).await.unwrap();
    let stored = queue.job(&claimed.id).await;
    assert!(stored.scheduled_at <= Timestamp::now().after(DAY * 366));
}
