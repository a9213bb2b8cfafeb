//! Finished jobs that are old enough are deleted.

use std::time::Duration;

use jobq::queue::{Id, NewJob, Pruned, Retention, Status};

use super::{HOUR, Queue, job, receipt};

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
        let watch = queue.bystanders_in(&others).await;
        let id = queue.standing(status).await.id;
        assert_eq!(queue.store.prune(retention, 99).await.unwrap(), Pruned { deleted: 1, more: false }, "{status}");
        assert_eq!(queue.store.find(&id).await.unwrap(), None);
        assert_eq!(queue.store.attempts(&id).await.unwrap(), []);
        assert_eq!(queue.store.logs(&id, 0).await.unwrap(), []);
        watch.are_unharmed(&queue).await;
    }
}

#[tokio::test]
async fn what_is_kept_for_ever_or_not_old_enough_stays() {
    let queue = Queue::fresh();
    let watch = queue.bystanders().await;
    let young = Retention { completed: Some(HOUR), cancelled: Some(HOUR), dead: Some(Duration::MAX) };
    for retention in [NONE, young] {
        assert_eq!(queue.store.prune(retention, 99).await.unwrap(), Pruned { deleted: 0, more: false });
    }
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn unfinished_jobs_are_never_deleted() {
    let queue = Queue::fresh();
    let watch = queue.bystanders_in(&[Status::Pending, Status::Running, Status::Failed]).await;
    let all = Some(Duration::ZERO);
    queue.store.prune(Retention { completed: all, cancelled: all, dead: all }, 99).await.unwrap();
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn the_oldest_go_first_in_small_batches() {
    let queue = Queue::fresh();
    let jobs: Vec<NewJob> = (0..5).map(|_| job("work")).collect();
    let ids: Vec<Id> = jobs.iter().map(|job| job.id.clone()).collect();
    queue.store.enqueue(jobs).await.unwrap();
    for claimed in queue.claim(5).await {
        queue.store.complete(receipt(&claimed), String::new(), vec![]).await.unwrap();
    }
    let all = Retention { completed: Some(Duration::ZERO), ..NONE };
    assert_eq!(queue.store.prune(all, 2).await.unwrap(), Pruned { deleted: 2, more: true });
    let left: Vec<Id> = queue.all().await.into_iter().rev().map(|job| job.id).collect();
    assert_eq!(left, ids[2..]);
    assert_eq!(queue.store.prune(all, 9).await.unwrap(), Pruned { deleted: 3, more: false });
    assert_eq!(queue.store.prune(all, 0).await.unwrap().deleted, 0);
}

#[tokio::test]
async fn a_place_in_the_queue_is_never_given_twice() {
    let queue = Queue::fresh();
    let last = queue.standing(Status::Completed).await.lease.job;
    queue.store.prune(Retention { completed: Some(Duration::ZERO), ..NONE }, 9).await.unwrap();
    let next = queue.job(&queue.add(job("work")).await).await.reference;
    assert!(next > last, "{next:?} after {last:?}");
}
