//! Snooze.

use std::time::Duration;

use jobq::queue::{AttemptWrite, Next, Outcome, Status, Timestamp};

use super::{DAY, Queue, failure, is_since, receipt};

#[tokio::test]
async fn a_snoozed_job_waits_and_the_attempt_does_not_count() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let first = queue.running().await;
    queue.store.fail(receipt(&first), failure(Next::Retry(Duration::ZERO))).await.unwrap();
    let second = queue.claim(1).await.remove(0);
    let start = Timestamp::now();
    assert_eq!(queue.store.snooze(receipt(&second), DAY).await.unwrap(), AttemptWrite::Done);
    let stored = queue.job(&first.id).await;
    assert_eq!((stored.status, stored.attempts, stored.error.as_deref()), (Status::Pending, 1, Some("no luck")));
    assert!(is_since(stored.scheduled_at.before(DAY), start));
    assert_eq!((stored.completed_at, stored.lease_until), (None, None));
    assert_eq!(queue.outcomes(&first.id).await, [Outcome::Failed, Outcome::Snoozed]);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_snooze_lasts_from_100_ms_to_366_days() {
    for (asked, got) in [(Duration::ZERO, Duration::from_millis(100)), (Duration::MAX, DAY * 366)] {
        let queue = Queue::fresh();
        let claimed = queue.running().await;
        let start = Timestamp::now();
        queue.store.snooze(receipt(&claimed), asked).await.unwrap();
        assert!(is_since(queue.job(&claimed.id).await.scheduled_at.before(got), start));
    }
}

#[tokio::test]
async fn a_stale_lease_snoozes_nothing() {
    let queue = Queue::fresh();
    let stale = queue.in_state(Status::Dead).await;
    let before = queue.job(&stale.id).await;
    assert_eq!(queue.store.snooze(receipt(&stale), DAY).await.unwrap(), AttemptWrite::LeaseLost);
    assert_eq!(queue.job(&stale.id).await, before);
}
