//! Give back: jobs whose guest had started when the worker shut down.

use jobq::queue::{AttemptWrite, Outcome, Status};

use super::{Queue, job, receipt};

#[tokio::test]
async fn a_job_given_back_keeps_its_position() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let id = queue.add(job("work")).await;
    let before = queue.job(&id).await;
    queue.add(job("work")).await;
    let claimed = queue.claim(1).await.remove(0);
    assert_eq!(queue.store.give_back(receipt(&claimed)).await.unwrap(), AttemptWrite::Done);
    let stored = queue.job(&id).await;
    assert_eq!((stored.status, stored.attempts, stored.scheduled_at), (Status::Pending, 0, before.scheduled_at));
    assert_eq!((stored.completed_at, stored.lease_until, stored.lease), (None, None, 1));
    assert_eq!(queue.outcomes(&id).await, [Outcome::GivenBack]);
    assert_eq!(queue.claim(1).await[0].id, id);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_stale_lease_gives_nothing_back() {
    let queue = Queue::fresh();
    let stale = queue.in_state(Status::Cancelled).await;
    let before = queue.job(&stale.id).await;
    assert_eq!(queue.store.give_back(receipt(&stale)).await.unwrap(), AttemptWrite::LeaseLost);
    assert_eq!(queue.job(&stale.id).await, before);
}
