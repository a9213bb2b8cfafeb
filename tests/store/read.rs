//! Reads: find, list, counts, holder.

use std::time::Duration;

use jobq::queue::{Counts, Filter, Id, NewJob, Resolved, Status};

use super::{HOUR, Queue, claim, due_in, job, keyed, receipt};

#[tokio::test]
async fn a_missing_job_is_not_found() {
    let queue = Queue::fresh();
    let id = Id::parse("nobody").unwrap();
    assert_eq!(queue.store.find(&id).await.unwrap(), None);
    assert_eq!(queue.store.attempts(&id).await.unwrap(), []);
    assert_eq!(queue.store.history(&id).await.unwrap(), None);
    assert_eq!(queue.store.logs(&id, 0).await.unwrap(), []);
    assert_eq!(queue.store.holder("nothing", None).await.unwrap(), None);
}

#[tokio::test]
async fn the_beginning_of_an_id_names_the_only_job_that_has_it() {
    let queue = Queue::fresh();
    let ids = ["abcdef-1", "abcdef-22", "abcdef-2", "abcdeg", "Abcdef", "äöüäöü-x"].map(|id| Id::parse(id).unwrap());
    queue.store.enqueue(ids.iter().map(|id| NewJob { id: id.clone(), ..job("work") }).collect()).await.unwrap();
    let resolve = async |text: &str| queue.store.resolve(&Id::parse(text).unwrap()).await.unwrap();
    let found = |at: usize| Resolved::Job(ids[at].clone());
    for (text, expected) in [
        ("abcdef-1", found(0)),
        ("abcdef-2", found(2)),
        ("abcdef-22", found(1)),
        ("abcdeg", found(3)),
        ("Abcdef", found(4)),
        ("äöüäöü", found(5)),
        ("abcdef", Resolved::Ambiguous([0, 2, 1].map(|at| ids[at].clone()).to_vec())),
        ("abcde", Resolved::NotFound),
        ("abcdef-3", Resolved::NotFound),
        ("abcdeh", Resolved::NotFound),
        ("%%%%%%", Resolved::NotFound),
    ] {
        assert_eq!(resolve(text).await, expected, "{text}");
    }
    queue
        .store
        .enqueue((0..20).map(|n| NewJob { id: Id::stored(&format!("many-{n:04}")), ..job("work") }).collect())
        .await
        .unwrap();
    let Resolved::Ambiguous(first) = resolve("many-00").await else { panic!("it is ambiguous") };
    assert_eq!(first, (0..Resolved::LISTED).map(|n| Id::stored(&format!("many-{n:04}"))).collect::<Vec<_>>());
}

#[tokio::test]
async fn jobs_due_within_a_time_are_counted() {
    let queue = Queue::fresh();
    for delay in [Duration::ZERO, HOUR, HOUR, 3 * HOUR] {
        queue.add(due_in(delay)).await;
    }
    assert_eq!(queue.store.due_within(2 * HOUR).await.unwrap(), 2);
    assert_eq!(queue.store.due_within(4 * HOUR).await.unwrap(), 3);
    assert_eq!(queue.store.due_within(Duration::ZERO).await.unwrap(), 0);
}

#[tokio::test]
async fn a_list_is_newest_first_and_limited() {
    let queue = Queue::fresh();
    let jobs: Vec<NewJob> = (0..5).map(|_| job("work")).collect();
    let newest: Vec<Id> = jobs.iter().rev().take(3).map(|job| job.id.clone()).collect();
    queue.store.enqueue(jobs).await.unwrap();
    let filter = Filter { status: None, job_type: None, limit: 3 };
    let listed = queue.store.list(filter.clone()).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.id.clone()).collect::<Vec<_>>(), newest);
    assert!(listed.iter().map(|job| job.reference).rev().is_sorted());
    assert_eq!(queue.store.list(Filter { limit: 0, ..filter }).await.unwrap(), []);
}

#[tokio::test]
async fn a_list_has_exactly_the_jobs_of_its_filter() {
    let queue = Queue::fresh();
    queue.other_jobs().await;
    for _ in 0..2 {
        queue.other_jobs_in(&[Status::Completed, Status::Running, Status::Dead, Status::Cancelled]).await;
    }
    let all = queue.all().await;
    assert_eq!(all.len(), 14);
    let states = Status::ALL.into_iter().map(Some).chain([None]);
    for status in states {
        for job_type in [None, Some("other-dead".to_owned()), Some("nobody".to_owned())] {
            for limit in [2, 100] {
                let filter = Filter { status, job_type: job_type.clone(), limit };
                let fits = |job: &&jobq::queue::Job| {
                    status.is_none_or(|status| job.status == status)
                        && job_type.as_ref().is_none_or(|name| job.job_type == *name)
                };
                let expected: Vec<_> = all.iter().filter(fits).take(limit).cloned().collect();
                assert_eq!(queue.store.list(filter.clone()).await.unwrap(), expected, "{filter:?}");
            }
        }
    }
}

#[tokio::test]
async fn counts_have_each_state_that_has_jobs() {
    let queue = Queue::fresh();
    assert_eq!(queue.store.counts().await.unwrap(), Counts::new());
    queue.other_jobs().await;
    queue.other_jobs_in(&[Status::Dead, Status::Dead, Status::Completed]).await;
    let counts = queue.store.counts().await.unwrap();
    let expected = [1, 1, 2, 1, 3, 1];
    assert_eq!(counts, Status::ALL.into_iter().zip(expected).collect::<Counts>());
}

#[tokio::test]
async fn holder_can_exclude_a_lease() {
    let queue = Queue::fresh();
    let id = queue.add(keyed("k")).await;
    let claimed = queue.claim(1).await.remove(0);
    queue.add(job("other")).await;
    let other = queue.store.claim(claim("other", 1)).await.unwrap().jobs.remove(0);
    assert_eq!(queue.store.holder("k", None).await.unwrap(), Some(id.clone()));
    assert_eq!(queue.store.holder("k", Some(claimed.lease)).await.unwrap(), None);
    assert_eq!(queue.store.holder("k", Some(other.lease)).await.unwrap(), Some(id));
}

/// With two snapshots, an attempt that has ended would sometimes appear beside a job that is still running.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_and_its_attempts_come_from_one_snapshot() {
    let queue = Queue::fresh();
    for _ in 0..100 {
        let id = queue.add(job("work")).await;
        let claimed = queue.claim(1).await.remove(0);
        let store = queue.store.clone();
        let end = tokio::spawn(async move { store.complete(receipt(&claimed), "done".into(), vec![]).await });
        loop {
            let (job, attempts) = queue.store.history(&id).await.unwrap().unwrap();
            assert_eq!(job.status == Status::Completed, attempts.len() == 1, "{job:?} {attempts:?}");
            if job.status == Status::Completed {
                break;
            }
        }
        end.await.unwrap().unwrap();
    }
}
