//! Somebody wants many jobs run again.

use jobq::queue::{BulkResult, Status, Timestamp};

use super::{Queue, is_since, keyed, policies};

#[tokio::test]
async fn many_jobs_run_again_as_one_would() {
    let queue = Queue::fresh();
    let watch = queue.bystanders().await;
    let mut jobs = Vec::new();
    for status in [Status::Dead, Status::Dead, Status::Cancelled] {
        jobs.push(queue.standing(status).await);
    }
    let start = Timestamp::now();
    let references = jobs.iter().map(|claimed| claimed.lease.job).collect();
    let answer = queue.store.retry_many(references, vec![Status::Dead, Status::Cancelled], policies()).await.unwrap();
    assert_eq!(answer, BulkResult { moved: 3, gone: 0, key_taken: 0 });
    for claimed in &jobs {
        let stored = queue.job(&claimed.id).await;
        assert_eq!((stored.status, stored.completed_at), (Status::Pending, None));
        assert!(is_since(stored.scheduled_at, start));
    }
    watch.are_unharmed(&queue).await;
    assert_eq!(queue.claim(9).await.len(), 3);
}

#[tokio::test]
async fn what_has_left_the_asked_states_or_is_gone_is_passed_over() {
    let queue = Queue::fresh();
    let cancelled = queue.standing(Status::Cancelled).await;
    let completed = queue.standing(Status::Completed).await;
    let before = queue.all().await;
    let references = vec![cancelled.lease.job, completed.lease.job, queue.no_job().await];
    let answer = queue.store.retry_many(references, vec![Status::Dead, Status::Completed], policies()).await.unwrap();
    assert_eq!(answer, BulkResult { moved: 0, gone: 3, key_taken: 0 });
    assert_eq!(queue.all().await, before);
}

#[tokio::test]
async fn of_several_jobs_with_one_key_the_first_takes_it() {
    let queue = Queue::fresh();
    let mut references = Vec::new();
    for _ in 0..3 {
        let id = queue.add(keyed("k")).await;
        queue.store.cancel(&id).await.unwrap();
        references.push(queue.job(&id).await.reference);
    }
    let answer = queue.store.retry_many(references.clone(), vec![Status::Cancelled], policies()).await.unwrap();
    assert_eq!(answer, BulkResult { moved: 1, gone: 0, key_taken: 2 });
    let states: Vec<Status> = queue.all().await.iter().rev().map(|job| job.status).collect();
    assert_eq!(states, [Status::Pending, Status::Cancelled, Status::Cancelled]);
}
