//! Claim.

use std::time::Duration;

use jobq::queue::{Claim, Claimed, Due, Id, NewJob, Next, Status, Timestamp, Want};

use super::{DAY, HOUR, Queue, claim, due_in, failure, is_since, job, receipt, want};

fn ids(jobs: &[Claimed]) -> Vec<Id> {
    jobs.iter().map(|job| job.id.clone()).collect()
}

/// This many minutes before a fixed time in the past.
fn before(minutes: i64) -> Due {
    Due::At(Timestamp::from_millis(1_700_000_000_000 - minutes * 60_000))
}

#[tokio::test]
async fn a_claimed_job_is_running_under_a_lease() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let id = queue.add(NewJob { max_attempts: Some(4), timeout: Some(DAY), ..job("work") }).await;
    let start = Timestamp::now();
    let claimed = queue.claim(5).await.remove(0);
    assert_eq!((&claimed.id, claimed.job_type.as_str(), claimed.attempt), (&id, "work", 1));
    assert_eq!(claimed.payload.as_deref(), Ok(r#"{"to":"ada"}"#));
    assert_eq!((claimed.max_attempts, claimed.timeout), (Some(4), Some(DAY)));
    let stored = queue.job(&id).await;
    assert_eq!((stored.status, stored.lease, stored.attempts), (Status::Running, 1, 0));
    assert_eq!(claimed.lease.token, 1);
    assert!(is_since(stored.started_at.unwrap(), start));
    assert_eq!(stored.lease_until, Some(stored.started_at.unwrap().after(HOUR)));
    assert_eq!((stored.worker.as_deref(), stored.completed_at), (Some("tester"), None));
    assert!(queue.claim(5).await.is_empty());
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_claim_keeps_the_last_error_and_resets_the_progress() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    queue.store.save_progress(vec![super::progress::progress(&claimed, 40, "half")]).await.unwrap();
    queue.store.fail(receipt(&claimed), failure(Next::Retry(Duration::ZERO))).await.unwrap();
    let again = queue.claim(1).await.remove(0);
    assert_eq!((again.lease.token, again.attempt), (2, 2));
    let stored = queue.job(&again.id).await;
    assert_eq!((stored.error.as_deref(), stored.progress), (Some("no luck"), None));
}

#[tokio::test]
async fn jobs_come_by_priority_then_time_then_insertion() {
    let queue = Queue::fresh();
    let jobs = [(0, 5), (9, 1), (0, 7), (-3, 99), (9, 1), (0, 5), (9, 2)];
    let mut added = Vec::new();
    for (priority, minutes) in jobs {
        added.push(queue.add(NewJob { priority, due: before(minutes), ..job("work") }).await);
    }
    let order = [6, 1, 4, 2, 0, 5, 3].map(|place: usize| added[place].clone());
    let mut taken = Vec::new();
    for most in [1, 2, 9] {
        taken.extend(ids(&queue.claim(most).await));
    }
    assert_eq!(taken, order);
}

#[tokio::test]
async fn many_jobs_due_at_the_same_time_keep_their_order() {
    let queue = Queue::fresh();
    let jobs: Vec<NewJob> =
        (0..500).map(|n| NewJob { priority: n % 3, due: before(i64::from(n % 7)), ..job("work") }).collect();
    let mut expected: Vec<(i16, Timestamp, usize, Id)> = Vec::new();
    for (place, job) in jobs.iter().enumerate() {
        let Due::At(at) = job.due else { unreachable!() };
        expected.push((-job.priority, at, place, job.id.clone()));
    }
    expected.sort();
    queue.store.enqueue(jobs).await.unwrap();
    let mut taken = Vec::new();
    for most in [1, 7, 64, 100, 500] {
        taken.extend(ids(&queue.claim(most).await));
    }
    assert_eq!(taken, expected.into_iter().map(|(.., id)| id).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_order_holds_across_types_within_the_limit_of_each() {
    let queue = Queue::fresh();
    let mut added = Vec::new();
    for (name, priority, minutes) in
        [("mail", 0, 1), ("report", 5, 1), ("mail", 5, 2), ("mail", 5, 3), ("report", 0, 2), ("other", 99, 9)]
    {
        added.push(queue.add(NewJob { priority, due: before(minutes), ..job(name) }).await);
    }
    let wants = vec![want("mail", 2), want("report", 9), want("absent", 9), want("other", 0)];
    let claims = queue.store.claim(Claim { wants, slots: 9, ..claim("work", 1) }).await.unwrap();
    assert_eq!(ids(&claims.jobs), [3, 2, 1, 4].map(|place: usize| added[place].clone()));
}

#[tokio::test]
async fn the_limit_holds_over_all_types() {
    let queue = Queue::fresh();
    for name in ["a", "b", "a", "b"] {
        queue.add(job(name)).await;
    }
    let wants = vec![want("a", 9), want("b", 9)];
    let claims = queue.store.claim(Claim { wants, slots: 3, ..claim("work", 1) }).await.unwrap();
    assert_eq!(claims.jobs.len(), 3);
    let nothing = queue.store.claim(claim("a", 0)).await.unwrap();
    assert!(nothing.jobs.is_empty());
}

/// Jobs named by type and number.
fn names(jobs: &[Claimed], added: &[(&str, Id)]) -> Vec<String> {
    let name = |id: &Id| added.iter().position(|(_, known)| known == id).map(|at| format!("{}{at}", added[at].0));
    jobs.iter().map(|job| name(&job.id).unwrap()).collect()
}

#[tokio::test]
async fn free_slots_are_shared_and_only_types_that_may_are_claimed_ahead() {
    for (slots, short, long, expected) in [
        // (own slots, ahead) of each type; the long jobs `l` come first, except for the last short one.
        (0, (9, 2), (9, 0), vec!["s2", "s3"]),
        (1, (9, 2), (9, 0), vec!["l0", "s2", "s3"]),
        (2, (9, 2), (9, 0), vec!["l0", "l1", "s2", "s3"]),
        (3, (9, 0), (1, 0), vec!["l0", "s2", "s3"]),
        (3, (9, 9), (1, 1), vec!["l0", "l1", "s2", "s3", "s4"]),
        (1, (0, 1), (0, 0), vec!["s2"]),
        (9, (0, 0), (0, 2), vec!["l0", "l1"]),
        (0, (9, 0), (9, 0), vec![]),
    ] {
        let queue = Queue::fresh();
        let mut added = Vec::new();
        for (name, minutes) in [("l", 9), ("l", 8), ("s", 7), ("s", 6), ("s", 5)] {
            added.push((name, queue.add(NewJob { due: before(minutes), ..job(name) }).await));
        }
        let want = |name, (slots, ahead)| Want { slots, ahead, ..want(name, 0) };
        let wants = vec![want("s", short), want("l", long)];
        let claims = queue.store.claim(Claim { wants, slots, ..claim("s", 1) }).await.unwrap();
        assert_eq!(names(&claims.jobs, &added), expected, "{slots} {short:?} {long:?}");
    }
}

#[tokio::test]
async fn next_due_is_returned_unless_a_type_has_more_due_jobs_or_no_room() {
    let queue = Queue::fresh();
    for name in ["a", "a", "b"] {
        queue.add(job(name)).await;
    }
    for (name, hours) in [("a", 1), ("b", 3)] {
        queue.add(NewJob { due: Due::In(HOUR * hours), ..job(name) }).await;
    }
    let next_due = async |a: usize, b: usize, taken: usize| {
        let wants = vec![want("a", a), want("b", b)];
        let claims = queue.store.claim(Claim { wants, slots: 9, ..claim("a", 1) }).await.unwrap();
        assert_eq!(claims.jobs.len(), taken);
        for claimed in claims.jobs {
            queue.store.release(vec![claimed.lease]).await.unwrap();
        }
        claims.next_due.map(|due| due.as_secs().div_ceil(3600))
    };
    assert_eq!(next_due(9, 9, 3).await, Some(1));
    assert_eq!(next_due(1, 9, 2).await, Some(3), "more of `a` are due");
    assert_eq!(next_due(1, 1, 2).await, None);
    assert_eq!(next_due(3, 0, 2).await, Some(1));
}

#[tokio::test]
async fn a_type_named_twice_is_claimed_once() {
    let queue = Queue::fresh();
    let id = queue.add(job("work")).await;
    let wants = vec![want("work", 9), want("work", 9)];
    let claims = queue.store.claim(Claim { wants, slots: 9, ..claim("work", 1) }).await.unwrap();
    assert_eq!(ids(&claims.jobs), [id]);
}

#[tokio::test]
async fn a_job_is_never_claimed_before_its_time() {
    let queue = Queue::fresh();
    let later = queue.add(NewJob { priority: 9, ..due_in(HOUR) }).await;
    let soon = queue.add(job("work")).await;
    let claims = queue.store.claim(claim("work", 9)).await.unwrap();
    assert_eq!(ids(&claims.jobs), [soon]);
    let due = claims.next_due.unwrap();
    assert!(due <= HOUR && due > HOUR / 2, "{due:?}");
    assert_eq!(queue.job(&later).await.status, Status::Pending);
}

#[tokio::test]
async fn a_job_that_comes_due_is_claimed_in_order() {
    let queue = Queue::fresh();
    let low = queue.add(NewJob { priority: -1, ..job("work") }).await;
    let soon = Duration::from_millis(30);
    let high = queue.add(NewJob { priority: 9, ..due_in(soon) }).await;
    let middle = queue.add(NewJob { priority: 5, ..due_in(soon) }).await;
    let due = queue.job(&middle).await.scheduled_at;
    while Timestamp::now() < due {
        tokio::task::yield_now().await;
    }
    assert_eq!(ids(&queue.claim(2).await), [high, middle]);
    assert_eq!(ids(&queue.claim(2).await), [low]);
}

#[tokio::test]
async fn next_due_is_the_earliest_of_all_wanted_types_and_priorities() {
    let queue = Queue::fresh();
    for (name, priority, hours) in [("a", 5, 9), ("a", -5, 3), ("b", 0, 2), ("b", 7, 5), ("c", 0, 1)] {
        queue.add(NewJob { priority, due: Due::In(HOUR * hours), ..job(name) }).await;
    }
    let wants = vec![want("a", 1), want("b", 1)];
    let due = queue.store.claim(Claim { wants, slots: 9, ..claim("work", 1) }).await.unwrap().next_due.unwrap();
    assert!(due <= HOUR * 2 && due > HOUR, "{due:?}");
    assert_eq!(queue.store.claim(claim("absent", 9)).await.unwrap().next_due, None);
}

#[tokio::test]
async fn a_failed_job_waits_until_it_is_due() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    queue.store.fail(receipt(&claimed), failure(Next::Retry(DAY))).await.unwrap();
    let claims = queue.store.claim(claim("work", 9)).await.unwrap();
    assert!(claims.jobs.is_empty() && claims.next_due.unwrap() > HOUR);
}

#[tokio::test]
async fn concurrent_workers_claim_each_job_once() {
    let queue = Queue::fresh();
    queue.store.enqueue((0..200).map(|_| job("work")).collect()).await.unwrap();
    let workers: Vec<_> = (0..20)
        .map(|_| {
            let store = queue.store.clone();
            tokio::spawn(async move { store.claim(claim("work", 20)).await.unwrap().jobs })
        })
        .collect();
    let mut taken = Vec::new();
    for worker in workers {
        taken.extend(ids(&worker.await.unwrap()));
    }
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 200);
}
