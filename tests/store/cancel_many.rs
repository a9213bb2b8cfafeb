//! Bulk cancel.

use jobq::queue::{BulkResult, Outcome, Status, Timestamp};

use super::{Queue, is_since, job};

#[tokio::test]
async fn cancel_many_does_what_cancel_does() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let (running, failed) = (queue.in_state(Status::Running).await, queue.in_state(Status::Failed).await);
    let pending = queue.job(&queue.add(job("work")).await).await;
    let jobs = [(running.id, running.lease.job), (failed.id, failed.lease.job), (pending.id, pending.reference)];
    let start = Timestamp::now();
    let from = vec![Status::Pending, Status::Running, Status::Failed];
    let references = jobs.iter().map(|(_, reference)| *reference).collect();
    let answer = queue.store.cancel_many(references, from).await.unwrap();
    assert_eq!(answer, BulkResult { moved: 3, gone: 0, key_taken: 0 });
    for (id, _) in &jobs {
        let stored = queue.job(id).await;
        assert_eq!((stored.status, stored.lease_until), (Status::Cancelled, None));
        assert!(is_since(stored.completed_at.unwrap(), start));
    }
    assert_eq!(queue.outcomes(&jobs[0].0).await, [Outcome::Cancelled]);
    assert_eq!(queue.outcomes(&jobs[1].0).await, [Outcome::Failed]);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn jobs_that_left_the_given_states_or_were_deleted_are_skipped() {
    let queue = Queue::fresh();
    let running = queue.running().await;
    let waiting = queue.job(&queue.add(job("work")).await).await;
    let watch = queue.other_jobs().await;
    let references = vec![running.lease.job, waiting.reference, queue.no_job().await];
    let answer = queue.store.cancel_many(references, vec![Status::Pending]).await.unwrap();
    assert_eq!(answer, BulkResult { moved: 1, gone: 2, key_taken: 0 });
    assert_eq!(queue.job(&running.id).await.status, Status::Running);
    assert_eq!(queue.job(&waiting.id).await.status, Status::Cancelled);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn bulk_verbs_never_leave_a_final_state() {
    let queue = Queue::fresh();
    for status in [Status::Completed, Status::Dead, Status::Cancelled] {
        let claimed = queue.in_state(status).await;
        let before = queue.job(&claimed.id).await;
        let answer = queue.store.cancel_many(vec![claimed.lease.job], Status::ALL.to_vec()).await.unwrap();
        assert_eq!(answer, BulkResult { gone: 1, ..BulkResult::default() });
        assert_eq!(queue.job(&claimed.id).await, before);
    }
}
