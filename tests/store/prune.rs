//! Prune.

use std::time::Duration;

use jobq::queue::{Id, NewJob, Pruned, Retention, Status};

use super::{HOUR, Queue, job, receipt};

impl Queue {
    /// Prunes until the given number is deleted or nothing is left.
    pub(crate) async fn prune(&self, retention: Retention, limit: usize) -> Pruned {
        let mut all = Pruned { more: true, ..Pruned::default() };
        while all.more && all.deleted < limit {
            let pruned = self.store.prune(retention, limit - all.deleted).await.unwrap();
            all.deleted += pruned.deleted;
            all.more = pruned.more;
            all.obstacles.extend(pruned.obstacles);
        }
        all
    }
}

fn deleted(count: usize) -> Pruned {
    Pruned { deleted: count, ..Pruned::default() }
}

const NONE: Retention = Retention { completed: None, cancelled: None, dead: None };

#[tokio::test]
async fn each_state_has_its_own_retention() {
    let at_once = Some(Duration::ZERO);
    for (status, retention) in [
        (Status::Completed, Retention { completed: at_once, dead: Some(HOUR), ..NONE }),
        (Status::Cancelled, Retention { cancelled: at_once, completed: Some(HOUR), ..NONE }),
        (Status::Dead, Retention { dead: at_once, cancelled: Some(HOUR), ..NONE }),
    ] {
        let queue = Queue::fresh();
        let others: Vec<Status> = Status::ALL.into_iter().filter(|other| *other != status).collect();
        let watch = queue.other_jobs_in(&others).await;
        let id = queue.in_state(status).await.id;
        assert_eq!(queue.prune(retention, 99).await, deleted(1), "{status}");
        assert_eq!(queue.store.find(&id).await.unwrap(), None);
        assert_eq!(queue.store.attempts(&id).await.unwrap(), []);
        assert_eq!(queue.store.logs(&id, 0).await.unwrap(), []);
        watch.are_unchanged(&queue).await;
    }
}

#[tokio::test]
async fn jobs_within_their_retention_are_kept() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let young = Retention { completed: Some(HOUR), cancelled: Some(HOUR), dead: Some(Duration::MAX) };
    for retention in [NONE, young] {
        assert_eq!(queue.prune(retention, 99).await, deleted(0));
    }
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn unfinished_jobs_are_never_deleted() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs_in(&[Status::Pending, Status::Running, Status::Failed]).await;
    let all = Some(Duration::ZERO);
    queue.prune(Retention { completed: all, cancelled: all, dead: all }, 99).await;
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn the_oldest_are_deleted_first_in_small_batches() {
    let queue = Queue::fresh();
    let jobs: Vec<NewJob> = (0..5).map(|_| job("work")).collect();
    let ids: Vec<Id> = jobs.iter().map(|job| job.id.clone()).collect();
    queue.store.enqueue(jobs).await.unwrap();
    for claimed in queue.claim(5).await {
        queue.store.complete(receipt(&claimed), String::new(), vec![]).await.unwrap();
    }
    let all = Retention { completed: Some(Duration::ZERO), ..NONE };
    assert_eq!(queue.prune(all, 2).await, Pruned { more: true, ..deleted(2) });
    let left: Vec<Id> = queue.all().await.into_iter().rev().map(|job| job.id).collect();
    assert_eq!(left, ids[2..]);
    assert_eq!(queue.prune(all, 9).await, deleted(3));
    assert_eq!(queue.store.prune(all, 0).await.unwrap().deleted, 0);
}

#[tokio::test]
async fn a_row_number_is_never_reused() {
    let queue = Queue::fresh();
    let last = queue.in_state(Status::Completed).await.lease.job;
    queue.prune(Retention { completed: Some(Duration::ZERO), ..NONE }, 9).await;
    let next = queue.job(&queue.add(job("work")).await).await.reference;
    assert!(next > last, "{next:?} after {last:?}");
}
