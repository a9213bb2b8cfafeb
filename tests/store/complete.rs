//! Complete.

use std::time::Duration;

use jobq::queue::{AttemptWrite, Digest, Enqueued, NewJob, Next, Outcome, Receipt, Status, Timestamp};

use super::{DAY, Queue, failure, is_since, job, job_type, keyed, line, receipt};

#[tokio::test]
async fn a_completed_job_has_a_result_and_an_attempt() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let claimed = queue.running().await;
    let end = Receipt { duration: Duration::from_millis(250), ..receipt(&claimed) };
    let start = Timestamp::now();
    assert_eq!(queue.store.complete(end, "42".into(), vec![]).await.unwrap(), AttemptWrite::Done);
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.status, stored.result.as_deref(), stored.attempts), (Status::Completed, Some("42"), 1));
    assert!(is_since(stored.completed_at.unwrap(), start));
    assert_eq!((stored.lease_until, stored.error), (None, None));
    let entry = queue.store.attempts(&claimed.id).await.unwrap().remove(0);
    assert_eq!((entry.attempt, entry.outcome, entry.lease), (1, Outcome::Completed, claimed.lease.token));
    assert_eq!(
        (entry.duration, entry.fuel, entry.peak_memory),
        (Duration::from_millis(250), Some(1_000), Some(65_536))
    );
    assert_eq!((entry.digest, entry.error), (Some(Digest([7; 32])), None));
    assert_eq!(Some(entry.started_at), stored.started_at);
    assert_eq!(entry.started_at.after(entry.duration), stored.completed_at.unwrap());
    let logs = queue.store.logs(&claimed.id, 0).await.unwrap();
    assert_eq!((logs.len(), logs[0].message.as_str(), logs[0].attempt), (1, "goodbye", 1));
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_completion_clears_the_error_of_earlier_attempts() {
    let queue = Queue::fresh();
    let first = queue.running().await;
    queue.store.fail(receipt(&first), failure(Next::Retry(Duration::ZERO))).await.unwrap();
    let second = queue.claim(1).await.remove(0);
    queue.store.complete(receipt(&second), String::new(), vec![]).await.unwrap();
    let stored = queue.job(&first.id).await;
    assert_eq!((stored.error, stored.result.as_deref(), stored.attempts), (None, Some(""), 2));
    assert_eq!(queue.outcomes(&first.id).await, [Outcome::Failed, Outcome::Completed]);
}

#[tokio::test]
async fn a_stale_lease_completes_nothing() {
    let queue = Queue::fresh();
    let stale = queue.running().await;
    queue.store.snooze(receipt(&stale), Duration::ZERO).await.unwrap();
    let watch = queue.other_jobs().await;
    let before = queue.job(&stale.id).await;
    let lost = queue.store.complete(receipt(&stale), "late".into(), vec![job("follow")]).await.unwrap();
    assert_eq!(lost, AttemptWrite::LeaseLost);
    assert_eq!(queue.job(&stale.id).await, before);
    assert_eq!(queue.outcomes(&stale.id).await, [Outcome::Snoozed]);
    assert_eq!(queue.store.logs(&stale.id, 0).await.unwrap().len(), 1);
    assert!(queue.all().await.iter().all(|job| job.job_type != "follow"));
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn follow_ups_are_added_with_the_completion() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    let follow_ups = vec![job("follow"), NewJob { job_type: job_type("follow"), ..keyed("held") }, job("follow")];
    queue.add(keyed("held")).await;
    queue.store.complete(receipt(&claimed), String::new(), follow_ups.clone()).await.unwrap();
    let added: Vec<_> =
        queue.all().await.into_iter().filter(|job| job.job_type == "follow").map(|job| job.id).collect();
    assert_eq!(added, [follow_ups[2].id.clone(), follow_ups[0].id.clone()]);
}

#[tokio::test]
async fn a_follow_up_may_take_the_key_of_its_job() {
    let queue = Queue::fresh();
    queue.add(keyed("k")).await;
    let claimed = queue.claim(1).await.remove(0);
    let next = keyed("k");
    queue.store.complete(receipt(&claimed), String::new(), vec![next.clone()]).await.unwrap();
    assert_eq!(queue.store.holder("k", None).await.unwrap(), Some(next.id));
}

#[tokio::test]
async fn concurrent_completions_each_complete_their_own_job() {
    let queue = Queue::fresh();
    let added = queue.store.enqueue((0..100).map(|_| job("work")).collect()).await.unwrap();
    assert!(added.iter().all(|answer| matches!(answer, Enqueued::Added(_))));
    let calls: Vec<_> = queue
        .claim(100)
        .await
        .into_iter()
        .rev()
        .map(|claimed| {
            let store = queue.store.clone();
            tokio::spawn(
                async move { store.complete(receipt(&claimed), claimed.id.to_string(), vec![]).await.unwrap() },
            )
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), AttemptWrite::Done);
    }
    assert!(queue.all().await.iter().all(|job| job.result.as_deref() == Some(job.id.as_str())));
}

#[tokio::test]
async fn attempts_and_logs_keep_the_last_hundred_attempts() {
    let queue = Queue::fresh();
    let id = queue.add(job("work")).await;
    for round in 1..=105 {
        let claimed = queue.claim(1).await.remove(0);
        let end = Receipt { lines: vec![line(&format!("round {round}"))], ..receipt(&claimed) };
        queue.store.fail(end, failure(Next::Retry(Duration::ZERO))).await.unwrap();
    }
    let attempts = queue.store.attempts(&id).await.unwrap();
    assert_eq!((attempts.len(), attempts[0].attempt, attempts[99].attempt), (100, 6, 105));
    let logs = queue.store.logs(&id, 0).await.unwrap();
    assert_eq!((logs.len(), logs[0].message.as_str()), (100, "round 6"));
    let claimed = queue.claim(1).await.remove(0);
    queue.store.snooze(receipt(&claimed), DAY).await.unwrap();
    assert_eq!(queue.store.attempts(&id).await.unwrap().len(), 100);
}
