//! Cancel.

use jobq::queue::{AttemptWrite, Cancelled, Id, Next, Outcome, Status, Timestamp};

use super::{Queue, failure, is_since, receipt};

#[tokio::test]
async fn a_waiting_job_is_cancelled() {
    for status in [Status::Pending, Status::Failed] {
        let queue = Queue::fresh();
        let watch = queue.other_jobs().await;
        let id = queue.in_state(status).await.id;
        let (before, outcomes) = (queue.job(&id).await, queue.outcomes(&id).await);
        let start = Timestamp::now();
        assert_eq!(queue.store.cancel(&id).await.unwrap(), Cancelled::From(status));
        let stored = queue.job(&id).await;
        assert!(is_since(stored.completed_at.unwrap(), start));
        assert_eq!((stored.status, stored.attempts), (Status::Cancelled, before.attempts));
        assert_eq!((stored.error, stored.scheduled_at), (before.error, before.scheduled_at));
        assert_eq!(queue.outcomes(&id).await, outcomes);
        assert!(queue.claim(1).await.is_empty());
        watch.are_unchanged(&queue).await;
    }
}

#[tokio::test]
async fn a_cancelled_running_job_is_never_overwritten() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let claimed = queue.running().await;
    assert_eq!(queue.store.cancel(&claimed.id).await.unwrap(), Cancelled::From(Status::Running));
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.status, stored.attempts, stored.lease_until), (Status::Cancelled, 0, None));
    let entry = queue.store.attempts(&claimed.id).await.unwrap().remove(0);
    assert_eq!((entry.attempt, entry.outcome, entry.lease), (1, Outcome::Cancelled, claimed.lease.token));
    assert_eq!(entry.started_at.after(entry.duration), stored.completed_at.unwrap());
    let end = || receipt(&claimed);
    assert_eq!(queue.store.complete(end(), "late".into(), vec![]).await.unwrap(), AttemptWrite::LeaseLost);
    assert_eq!(queue.store.fail(end(), failure(Next::Dead)).await.unwrap(), AttemptWrite::LeaseLost);
    assert_eq!(queue.job(&claimed.id).await, stored);
    assert_eq!(queue.outcomes(&claimed.id).await, [Outcome::Cancelled]);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_finished_job_is_not_cancelled() {
    for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
        let queue = Queue::fresh();
        let id = queue.in_state(status).await.id;
        let before = queue.job(&id).await;
        assert_eq!(queue.store.cancel(&id).await.unwrap(), Cancelled::Forbidden(status));
        assert_eq!(queue.job(&id).await, before);
    }
}

#[tokio::test]
async fn a_job_that_does_not_exist_is_not_found() {
    let queue = Queue::fresh();
    assert_eq!(queue.store.cancel(&Id::generate()).await.unwrap(), Cancelled::NotFound);
}
