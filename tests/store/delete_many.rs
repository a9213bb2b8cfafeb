//! Deleting jobs by request.

use jobq::queue::{Deleted, Id, Status};

use super::{Queue, job};

#[tokio::test]
async fn jobs_are_deleted_with_their_attempts_and_logs() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let (mut ids, mut references) = (Vec::<Id>::new(), Vec::new());
    for status in [Status::Completed, Status::Dead, Status::Cancelled, Status::Failed] {
        let claimed = queue.in_state(status).await;
        ids.push(claimed.id);
        references.push(claimed.lease.job);
    }
    let waiting = queue.job(&queue.add(job("work")).await).await;
    ids.push(waiting.id);
    references.push(waiting.reference);
    let deleted = queue.store.delete_many(references, Status::ALL.to_vec()).await.unwrap();
    assert_eq!(deleted, Deleted { deleted: 5, ..Deleted::default() });
    for id in ids {
        assert_eq!(queue.store.find(&id).await.unwrap(), None);
        assert!(queue.outcomes(&id).await.is_empty());
        assert!(queue.store.logs(&id, 0).await.unwrap().is_empty());
    }
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_running_job_is_never_deleted() {
    let queue = Queue::fresh();
    let running = queue.running().await;
    let deleted = queue.store.delete_many(vec![running.lease.job], Status::ALL.to_vec()).await.unwrap();
    assert_eq!(deleted, Deleted { gone: 1, ..Deleted::default() });
    assert_eq!(queue.job(&running.id).await.status, Status::Running);
}

#[tokio::test]
async fn jobs_in_other_states_and_deleted_ones_are_passed_over() {
    let queue = Queue::fresh();
    let dead = queue.in_state(Status::Dead).await;
    let watch = queue.other_jobs().await;
    let references = vec![dead.lease.job, queue.no_job().await];
    let deleted = queue.store.delete_many(references.clone(), vec![Status::Completed]).await.unwrap();
    assert_eq!(deleted, Deleted { gone: 2, ..Deleted::default() });
    let deleted = queue.store.delete_many(references, vec![Status::Dead]).await.unwrap();
    assert_eq!(deleted, Deleted { deleted: 1, gone: 1, ..Deleted::default() });
    watch.are_unchanged(&queue).await;
}
