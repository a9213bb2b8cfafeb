//! An attempt failed.

use std::time::Duration;

use jobq::queue::{AttemptFailure, Next, Outcome, Recorded, Status, Timestamp};

use super::{DAY, Queue, failure, is_since, receipt};

#[tokio::test]
async fn a_failed_attempt_counts_and_another_follows_later() {
    let queue = Queue::fresh();
    let watch = queue.bystanders().await;
    let claimed = queue.running().await;
    let start = Timestamp::now();
    assert_eq!(queue.store.fail(receipt(&claimed), failure(Next::Retry(DAY))).await.unwrap(), Recorded::Yes);
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.status, stored.attempts, stored.error.as_deref()), (Status::Failed, 1, Some("no luck")));
    assert!(is_since(stored.scheduled_at.before(DAY), start));
    assert_eq!((stored.completed_at, stored.lease_until, stored.result), (None, None, None));
    let entry = queue.store.attempts(&claimed.id).await.unwrap().remove(0);
    assert_eq!((entry.attempt, entry.outcome, entry.error.as_deref()), (1, Outcome::Failed, Some("no luck")));
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn a_job_that_failed_for_good_is_dead() {
    let queue = Queue::fresh();
    let watch = queue.bystanders().await;
    let claimed = queue.running().await;
    let scheduled_at = queue.job(&claimed.id).await.scheduled_at;
    let start = Timestamp::now();
    queue.store.fail(receipt(&claimed), failure(Next::Dead)).await.unwrap();
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.status, stored.attempts, stored.error.as_deref()), (Status::Dead, 1, Some("no luck")));
    assert!(is_since(stored.completed_at.unwrap(), start));
    assert_eq!((stored.scheduled_at, stored.lease_until), (scheduled_at, None));
    assert!(queue.claim(1).await.is_empty());
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn the_ledger_tells_how_it_failed() {
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
    assert_eq!(queue.store.fail(receipt(&stale), failure(Next::Dead)).await.unwrap(), Recorded::LeaseLost);
    assert_eq!(queue.job(&stale.id).await, before);
    assert_eq!(queue.outcomes(&stale.id).await, [Outcome::Completed]);
}

#[tokio::test]
async fn nobody_waits_longer_than_a_year_and_a_day() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    queue.store.fail(receipt(&claimed), failure(Next::Retry(Duration::MAX))).await.unwrap();
    let stored = queue.job(&claimed.id).await;
    assert!(stored.scheduled_at <= Timestamp::now().after(DAY * 366));
}
