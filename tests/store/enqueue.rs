//! Enqueue.

use std::collections::BTreeSet;
use std::time::Duration;

use jobq::queue::{AttemptWrite, Due, Enqueued, Id, Key, NewJob, Next, Payload, Status, StoreError, Timestamp};

use super::{DAY, Queue, at_once, failure, is_since, job, keyed, receipt};

#[tokio::test]
async fn a_job_is_stored_as_it_was_given() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let before = Timestamp::now();
    let payload = Payload::parse(r#" {"n": 12345678901234567890} "#.into(), 1 << 20).unwrap();
    let given = NewJob {
        payload,
        priority: -7,
        due: Due::In(DAY),
        max_attempts: Some(9),
        timeout: Some(Duration::from_millis(1500)),
        key: Some(Key::parse("k").unwrap()),
        ..job("work")
    };
    let id = queue.add(given.clone()).await;
    let stored = queue.job(&id).await;
    assert_eq!(stored.id, given.id);
    assert_eq!(stored.job_type, "work");
    assert_eq!(stored.payload, r#" {"n": 12345678901234567890} "#);
    assert_eq!((stored.priority, stored.max_attempts, stored.timeout), (-7, Some(9), given.timeout));
    assert_eq!((stored.status, stored.attempts, stored.lease), (Status::Pending, 0, 0));
    assert_eq!(stored.key.as_deref(), Some("k"));
    assert!(is_since(stored.created_at, before));
    assert_eq!(stored.scheduled_at, stored.created_at.after(DAY));
    assert_eq!((stored.started_at, stored.completed_at, stored.lease_until, stored.worker), (None, None, None, None));
    assert_eq!((stored.result, stored.error, stored.progress), (None, None, None));
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn omitted_fields_have_their_defaults() {
    let queue = Queue::fresh();
    let stored = queue.job(&queue.add(job("work")).await).await;
    assert_eq!((stored.max_attempts, stored.timeout, stored.key), (None, None, None));
    assert_eq!(stored.scheduled_at, stored.created_at);
}

#[tokio::test]
async fn a_due_time_in_the_distant_past_is_due_at_once() {
    let queue = Queue::fresh();
    queue.add(NewJob { due: Due::At(Timestamp::from_millis(0)), ..job("work") }).await;
    assert_eq!(queue.claim(1).await.len(), 1);
}

#[tokio::test]
async fn extreme_values_are_stored_without_overflow() {
    let queue = Queue::fresh();
    let extreme = NewJob {
        priority: i16::MIN,
        due: Due::In(Duration::MAX),
        max_attempts: Some(u32::MAX),
        timeout: Some(Duration::MAX),
        ..job("work")
    };
    let stored = queue.job(&queue.add(extreme).await).await;
    assert_eq!((stored.priority, stored.max_attempts), (i16::MIN, Some(u32::MAX)));
    assert_eq!(stored.scheduled_at.as_millis(), i64::MAX);
    queue.add(NewJob { priority: i16::MAX, due: Due::At(Timestamp::from_millis(i64::MIN)), ..job("work") }).await;
    assert_eq!(queue.claim(9).await.len(), 1);
}

#[tokio::test]
async fn results_are_in_the_order_of_the_jobs() {
    let queue = Queue::fresh();
    let jobs: Vec<NewJob> = (0..100).map(|_| job("work")).collect();
    let ids: Vec<Id> = jobs.iter().map(|job| job.id.clone()).collect();
    let answers = queue.store.enqueue(jobs).await.unwrap();
    assert_eq!(answers, ids.iter().cloned().map(Enqueued::Added).collect::<Vec<_>>());
    let stored: Vec<Id> = queue.all().await.into_iter().rev().map(|job| job.id).collect();
    assert_eq!(stored, ids);
}

#[tokio::test]
async fn all_jobs_are_added_or_none() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let twice = job("work");
    let refused = queue.store.enqueue(vec![job("work"), twice.clone(), twice]).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert!(queue.claim(9).await.is_empty());
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_refused_call_does_not_fail_others_in_the_same_transaction() {
    let queue = Queue::fresh();
    let taken = job("work");
    queue.add(taken.clone()).await;
    let answers = at_once(&queue, (0..40).map(|number| if number == 20 { taken.clone() } else { job("work") })).await;
    let refused: Vec<usize> = (0..40).filter(|&number| answers[number].is_err()).collect();
    assert_eq!(refused, [20]);
    assert_eq!(queue.claim(99).await.len(), 40);
}

#[tokio::test]
async fn zero_attempts_are_refused() {
    let queue = Queue::fresh();
    let refused = queue.store.enqueue(vec![NewJob { max_attempts: Some(0), ..job("work") }]).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_key_is_held_by_one_unfinished_job() {
    let queue = Queue::fresh();
    let first = queue.add(keyed("k")).await;
    let again = queue.store.enqueue(vec![keyed("k"), keyed("other"), keyed("other")]).await.unwrap();
    assert_eq!(again[0], Enqueued::Held(first));
    assert_eq!(again[2], Enqueued::Held(again[1].id().clone()));
    assert!(matches!(again[1], Enqueued::Added(_)));
    assert_eq!(queue.all().await.len(), 2);
}

#[tokio::test]
async fn concurrent_enqueues_with_one_key_add_one_job() {
    let queue = Queue::fresh();
    let answers = at_once(&queue, (0..50).map(|_| keyed("k"))).await;
    let answers: Vec<Enqueued> = answers.into_iter().map(|answer| answer.unwrap().remove(0)).collect();
    let ids: BTreeSet<&Id> = answers.iter().map(Enqueued::id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Enqueued::Added(_))).count(), 1);
    assert_eq!(queue.all().await.len(), 1);
}

#[tokio::test]
async fn a_key_is_free_once_its_job_has_ended() {
    for status in Status::ALL {
        let queue = Queue::fresh();
        let id = queue.add(keyed("k")).await;
        let claimed = queue.claim(1).await.remove(0);
        let end = receipt(&claimed);
        let recorded = match status {
            Status::Running => AttemptWrite::Done,
            Status::Pending => queue.store.snooze(end, DAY).await.unwrap(),
            Status::Completed => queue.store.complete(end, String::new(), vec![]).await.unwrap(),
            Status::Failed => queue.store.fail(end, failure(Next::Retry(DAY))).await.unwrap(),
            Status::Dead => queue.store.fail(end, failure(Next::Dead)).await.unwrap(),
            Status::Cancelled => queue.store.cancel(&id).await.map(|_| AttemptWrite::Done).unwrap(),
        };
        assert_eq!(recorded, AttemptWrite::Done);
        let next = queue.store.enqueue(vec![keyed("k")]).await.unwrap().remove(0);
        assert_eq!(matches!(next, Enqueued::Added(_)), status.is_terminal(), "{status}");
        let holder = queue.store.holder("k", None).await.unwrap().unwrap();
        assert_eq!(&holder, next.id());
    }
}
