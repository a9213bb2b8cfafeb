//! Every verb in every state, checked against the state machine.

use std::time::Duration;

use jobq::queue::{Event, Id, Lease, Next, Progress, Receipt, StaleLease, Status, WorkerName};

use super::{DAY, Queue, failure, line, policies, receipt};

#[tokio::test]
async fn each_verb_follows_the_state_machine() {
    for status in Status::ALL {
        for event in Event::ALL {
            let queue = Queue::fresh();
            let watch = queue.other_jobs().await;
            let claimed = queue.in_state(status).await;
            let before = queue.job(&claimed.id).await;
            happen(&queue, event, &claimed.id, receipt(&claimed)).await;
            let after = queue.job(&claimed.id).await;
            match status.after(event) {
                Some(expected) => assert_eq!(after.status, expected, "{status} {event:?}"),
                None => assert_eq!(after, before, "{status} {event:?}"),
            }
            assert_eq!(after.completed_at.is_some(), after.status.is_terminal(), "{status} {event:?}");
            assert_eq!(after.lease_until.is_some(), after.status == Status::Running, "{status} {event:?}");
            watch.are_unchanged(&queue).await;
        }
    }
}

#[tokio::test]
async fn bulk_verbs_and_rescue_follow_the_state_machine() {
    for status in Status::ALL {
        for event in [Event::GiveBack, Event::Cancel, Event::Retry, Event::FailForNow] {
            let queue = Queue::fresh();
            let claimed = queue.in_state(status).await;
            let before = queue.job(&claimed.id).await;
            let (store, one, any) = (&queue.store, vec![claimed.lease.job], Status::ALL.to_vec());
            match event {
                Event::GiveBack => store.release(vec![claimed.lease]).await.unwrap(),
                Event::Cancel => drop(store.cancel_many(one, any).await.unwrap()),
                Event::Retry => drop(store.retry_many(one, any, policies()).await.unwrap()),
                // Its lease is longer than any that a daemon grants.
                _ => drop(store.rescue(policies(), Some(Duration::ZERO), 9).await.unwrap()),
            }
            let after = queue.job(&claimed.id).await;
            match status.after(event) {
                Some(expected) => assert_eq!(after.status, expected, "{status} {event:?}"),
                None => assert_eq!(after, before, "{status} {event:?}"),
            }
        }
    }
}

#[tokio::test]
async fn only_a_running_job_can_be_renewed_or_save_progress() {
    for status in Status::ALL {
        let queue = Queue::fresh();
        let claimed = queue.in_state(status).await;
        let before = queue.job(&claimed.id).await;
        queue.store.renew(vec![claimed.lease.clone()], DAY).await.unwrap();
        let said = Progress { lease: claimed.lease, lines: vec![], progress: Some((7, "so far".into())) };
        queue.store.save_progress(vec![said]).await.unwrap();
        assert_eq!(queue.job(&claimed.id).await != before, status == Status::Running, "{status}");
    }
}

#[tokio::test]
async fn a_worker_presumed_dead_cannot_overwrite_its_successor() {
    for event in [Event::Complete, Event::FailForNow, Event::FailForGood, Event::Snooze, Event::GiveBack] {
        let queue = Queue::fresh();
        let first = queue.in_state(Status::Pending).await;
        let second = queue.claim(1).await.remove(0);
        assert_eq!(first.lease.job, second.lease.job);
        let before = (queue.job(&first.id).await, queue.outcomes(&first.id).await);
        happen(&queue, event, &first.id, receipt(&first)).await;
        queue.store.release(vec![first.lease.clone()]).await.unwrap();
        assert_eq!((queue.job(&first.id).await, queue.outcomes(&first.id).await), before, "{event:?}");
    }
}

#[tokio::test]
async fn another_worker_cannot_use_a_valid_token() {
    let queue = Queue::fresh();
    let held = queue.running().await;
    let other = Lease { worker: WorkerName::new("another"), ..held.lease.clone() };
    let before = (queue.job(&held.id).await, queue.outcomes(&held.id).await);
    for event in [Event::Complete, Event::FailForNow, Event::FailForGood, Event::Snooze, Event::GiveBack] {
        let end = Receipt { lease: other.clone(), ..receipt(&held) };
        happen(&queue, event, &held.id, end).await;
        assert_eq!((queue.job(&held.id).await, queue.outcomes(&held.id).await), before, "{event:?}");
    }
    let said = Progress { lease: other.clone(), lines: vec![line("no")], progress: Some((1, "no".into())) };
    queue.store.save_progress(vec![said]).await.unwrap();
    queue.store.release(vec![other.clone()]).await.unwrap();
    let stale = [StaleLease { lease: other.clone(), cancelled: false }];
    assert_eq!(queue.store.renew(vec![other.clone()], DAY).await.unwrap(), stale);
    assert_eq!(queue.store.stale(vec![other]).await.unwrap(), stale);
    assert_eq!((queue.job(&held.id).await, queue.outcomes(&held.id).await), before);
    assert_eq!(queue.store.logs(&held.id, 0).await.unwrap(), []);
}

async fn happen(queue: &Queue, event: Event, id: &Id, end: Receipt) {
    let store = &queue.store;
    match event {
        Event::Claim => drop(queue.claim(9).await),
        Event::Complete => drop(store.complete(end, "done".into(), vec![]).await.unwrap()),
        Event::FailForNow => drop(store.fail(end, failure(Next::Retry(Duration::ZERO))).await.unwrap()),
        Event::FailForGood => drop(store.fail(end, failure(Next::Dead)).await.unwrap()),
        Event::Snooze => drop(store.snooze(end, DAY).await.unwrap()),
        Event::GiveBack => drop(store.give_back(end).await.unwrap()),
        Event::Cancel => drop(store.cancel(id).await.unwrap()),
        Event::Retry => drop(store.retry(id, policies()).await.unwrap()),
    }
}
