//! Somebody stops many jobs at once.

use jobq::queue::{BulkResult, Outcome, Status, Timestamp};

use super::{Queue, is_since, job};

#[tokio::test]
async fn many_jobs_are_stopped_as_one_would_be() {
    let queue = Queue::fresh();
    let watch = queue.bystanders().await;
    let (running, failed) = (queue.standing(Status::Running).await, queue.standing(Status::Failed).await);
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
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn what_has_left_the_asked_states_or_is_gone_is_passed_over() {
    let queue = Queue::fresh();
    let running = queue.running().await;
    let waiting = queue.job(&queue.add(job("work")).await).await;
    let watch = queue.bystanders().await;
    let references = vec![running.lease.job, waiting.reference, queue.no_job().await];
    let answer = queue.store.cancel_many(references, vec![Status::Pending]).await.unwrap();
    assert_eq!(answer, BulkResult { moved: 1, gone: 2, key_taken: 0 });
    assert_eq!(queue.job(&running.id).await.status, Status::Running);
    assert_eq!(queue.job(&waiting.id).await.status, Status::Cancelled);
    watch.are_unharmed(&queue).await;
}

#[tokio::test]
async fn no_list_of_states_takes_a_job_out_of_an_end() {
    let queue = Queue::fresh();
    for status in [Status::Completed, Status::Dead, Status::Cancelled] {
        let claimed = queue.standing(status).await;
        let before = queue.job(&claimed.id).await;
        let answer = queue.store.cancel_many(vec![claimed.lease.job], Status::ALL.to_vec()).await.unwrap();
        assert_eq!(answer, BulkResult { gone: 1, ..BulkResult::default() });
        assert_eq!(queue.job(&claimed.id).await, before);
    }
}
