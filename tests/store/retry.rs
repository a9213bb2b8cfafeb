//! Retry by hand.

use std::sync::Arc;

use jobq::queue::{Id, NewJob, Next, Retried, RetryPolicies, RetryPolicy, Status, Timestamp};

use super::{Queue, failure, is_since, job, keyed, policies, receipt};

#[tokio::test]
async fn failed_dead_and_cancelled_jobs_can_be_retried() {
    for status in [Status::Failed, Status::Dead, Status::Cancelled] {
        let queue = Queue::fresh();
        let watch = queue.other_jobs().await;
        let id = queue.in_state(status).await.id;
        let (before, outcomes) = (queue.job(&id).await, queue.outcomes(&id).await);
        let start = Timestamp::now();
        assert_eq!(queue.store.retry(&id, policies()).await.unwrap(), Retried::From(status));
        let stored = queue.job(&id).await;
        assert!(is_since(stored.scheduled_at, start));
        assert_eq!((stored.status, stored.completed_at), (Status::Pending, None));
        assert_eq!((stored.attempts, stored.error), (before.attempts, before.error));
        assert_eq!(queue.outcomes(&id).await, outcomes);
        assert_eq!(queue.claim(1).await.remove(0).attempt, stored.attempts + 1);
        watch.are_unchanged(&queue).await;
    }
}

#[tokio::test]
async fn other_states_cannot_be_retried() {
    for status in [Status::Pending, Status::Running, Status::Completed] {
        let queue = Queue::fresh();
        let id = queue.in_state(status).await.id;
        let before = queue.job(&id).await;
        assert_eq!(queue.store.retry(&id, policies()).await.unwrap(), Retried::Forbidden(status));
        assert_eq!(queue.job(&id).await, before);
    }
    let queue = Queue::fresh();
    assert_eq!(queue.store.retry(&Id::generate(), policies()).await.unwrap(), Retried::NotFound);
}

#[tokio::test]
async fn a_retry_allows_at_least_one_more_attempt() {
    // own limit, limit of the type, own limit afterwards; one attempt is used
    for (own, of_type, after) in [(Some(1), 9, Some(2)), (Some(5), 1, Some(5)), (None, 1, Some(2)), (None, 3, None)] {
        let queue = Queue::fresh();
        queue.add(NewJob { max_attempts: own, ..job("work") }).await;
        let claimed = queue.claim(1).await.remove(0);
        queue.store.fail(receipt(&claimed), failure(Next::Dead)).await.unwrap();
        let default = RetryPolicy { max_attempts: of_type, ..RetryPolicy::default() };
        queue.store.retry(&claimed.id, Arc::new(RetryPolicies { default, ..RetryPolicies::default() })).await.unwrap();
        assert_eq!(queue.job(&claimed.id).await.max_attempts, after, "{own:?} {of_type}");
    }
}

#[tokio::test]
async fn a_retry_takes_its_key_again_or_reports_the_holder() {
    let queue = Queue::fresh();
    let first = queue.add(keyed("k")).await;
    queue.store.cancel(&first).await.unwrap();
    let second = queue.add(keyed("k")).await;
    let before = queue.job(&first).await;
    assert_eq!(queue.store.retry(&first, policies()).await.unwrap(), Retried::KeyTaken(second.clone()));
    assert_eq!(queue.job(&first).await, before);
    queue.store.cancel(&second).await.unwrap();
    assert_eq!(queue.store.retry(&first, policies()).await.unwrap(), Retried::From(Status::Cancelled));
    assert_eq!(queue.store.holder("k", None).await.unwrap(), Some(first));
}
