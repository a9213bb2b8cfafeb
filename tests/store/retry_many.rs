//! Bulk retry.

use jobq::queue::{BulkResult, Status, Timestamp};

use super::{Queue, is_since, keyed, policies};

#[tokio::test]
async fn retry_many_does_what_retry_does() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let mut jobs = Vec::new();
    for status in [Status::Dead, Status::Dead, Status::Cancelled] {
        jobs.push(queue.in_state(status).await);
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
    watch.are_unchanged(&queue).await;
    assert_eq!(queue.claim(9).await.len(), 3);
}

#[tokio::test]
async fn jobs_that_left_the_given_states_or_were_deleted_are_skipped() {
    let queue = Queue::fresh();
    let cancelled = queue.in_state(Status::Cancelled).await;
    let completed = queue.in_state(Status::Completed).await;
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
