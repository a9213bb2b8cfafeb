//! A worker that stops hands back a job whose guest had started.

use jobq::queue::{Outcome, Recorded, Status};

use super::{Queue, job, receipt};

#[tokio::test]
async fn a_job_given_back_stands_where_it_stood() {
    let queue = Queue::fresh();
    let watch = queue.bystanders().await;
    let id = queue.add(job("work")).await;
    let before = queue.job(&id).await;
    queue.add(job("work")).await;
    let claimed = queue.claim(1).await.remove(0);
    assert_eq!(queue.store.give_back(receipt(&claimed)).await.unwrap(), Recorded::Yes);
    let stored = queue.job(&id).await;
    assert_eq!((stored.status, stored.attempts, stored.scheduled_at), (Status::Pending, 0, before.scheduled_at));
    assert_eq!((stored.completed_at, stored.lease_until, stored.lease), (None, None, 1));
    assert_eq!(queue.outcomes(&id).await, [Outcome::GivenBack]);
    assert_eq!(queue.claim(1).await[0].id, id);
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn a_stale_lease_gives_nothing_back() {
    let queue = Queue::fresh();
    let stale = queue.standing(Status::Cancelled).await;
    let before = queue.job(&stale.id).await;
    assert_eq!(queue.store.give_back(receipt(&stale)).await.unwrap(), Recorded::LeaseLost);
    assert_eq!(queue.job(&stale.id).await, before);
}
