//! Reads: find, list, counts, holder.

use std::time::Duration;

use jobq::queue::{
    AttemptFailure, Counts, Due, Filter, Id, Job, JobSummary, NewJob, Next, Order, Overview, Resolved, Status,
    Timestamp, TypeOverview,
};

use super::{HOUR, Queue, claim, due_in, failure, is_since, job, keyed, receipt, tester};

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
async fn only_a_running_job_counts_as_running() {
    for status in Status::ALL {
        let queue = Queue::fresh();
        assert!(!queue.store.has_running().await.unwrap());
        queue.in_state(status).await;
        assert_eq!(queue.store.has_running().await.unwrap(), status == Status::Running, "{status}");
    }
}

#[tokio::test]
async fn a_prefix_of_an_id_finds_the_only_match() {
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
    let filter = Filter { limit: 3, ..Filter::default() };
    let listed = queue.store.list(filter.clone()).await.unwrap().jobs;
    assert_eq!(listed.iter().map(|job| job.id.clone()).collect::<Vec<_>>(), newest);
    assert!(listed.iter().map(|job| job.reference).rev().is_sorted());
    assert_eq!(queue.store.list(Filter { limit: 0, ..filter }).await.unwrap().jobs, []);
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
                let filter = Filter {
                    states: status.into_iter().collect(),
                    job_type: job_type.clone(),
                    limit,
                    ..Filter::default()
                };
                let fits = |job: &&jobq::queue::Job| {
                    status.is_none_or(|status| job.status == status)
                        && job_type.as_ref().is_none_or(|name| job.job_type == *name)
                };
                let expected: Vec<_> = all.iter().filter(fits).take(limit).cloned().collect();
                assert_eq!(queue.store.list(filter.clone()).await.unwrap().jobs, expected, "{filter:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_pages_of_a_list_make_up_the_list_in_every_order() {
    let queue = Queue::fresh();
    for (delay, priority) in [(HOUR, 0), (Duration::ZERO, 1), (2 * HOUR, 2), (HOUR, 3), (Duration::ZERO, 0)] {
        queue.add(NewJob { priority, ..due_in(delay) }).await;
    }
    for _ in 0..3 {
        queue.other_jobs_in(&[Status::Dead, Status::Completed, Status::Cancelled, Status::Running]).await;
    }
    queue.other_jobs_in(&[Status::Failed]).await;
    let all = queue.all().await;
    let ends = |job: &&Job| job.status.is_terminal();
    let waits = |job: &&Job| matches!(job.status, Status::Pending | Status::Failed);
    let mut ended: Vec<Job> = all.iter().filter(ends).cloned().collect();
    ended.sort_by_key(|job| std::cmp::Reverse((job.completed_at, job.reference)));
    let mut scheduled: Vec<Job> = all.iter().filter(waits).cloned().collect();
    scheduled.sort_by_key(|job| (job.scheduled_at, job.reference));
    assert_eq!((all.len(), ended.len(), scheduled.len()), (18, 9, 6));
    for (order, expected) in [(Order::Created, all), (Order::Ended, ended), (Order::Scheduled, scheduled)] {
        for states in [vec![], vec![Status::Dead, Status::Failed], vec![Status::Pending]] {
            let expected: Vec<Job> =
                expected.iter().filter(|job| states.is_empty() || states.contains(&job.status)).cloned().collect();
            for limit in [1, 2, 100] {
                let mut filter = Filter { states: states.clone(), order, limit, ..Filter::default() };
                let (mut listed, mut summaries) = (Vec::new(), Vec::new());
                loop {
                    summaries.extend(queue.store.summaries(filter.clone()).await.unwrap().jobs);
                    let page = queue.store.list(filter.clone()).await.unwrap();
                    listed.extend(page.jobs);
                    let Some(next) = page.next else { break };
                    filter.after = Some(next);
                }
                assert_eq!(listed, expected, "{filter:?}");
                assert_eq!(summaries, expected.iter().map(JobSummary::from).collect::<Vec<_>>(), "{filter:?}");
            }
            let filter = Filter { states, order, limit: 1, ..Filter::default() };
            assert_eq!(queue.store.matching(filter.clone(), 100).await.unwrap(), expected.len(), "{filter:?}");
            assert_eq!(queue.store.matching(filter.clone(), 1).await.unwrap(), expected.len().min(1), "{filter:?}");
            let filter = Filter { job_type: Some("work".into()), ..filter };
            let of_type = expected.iter().filter(|job| job.job_type == "work").count();
            assert_eq!(queue.store.matching(filter.clone(), 100).await.unwrap(), of_type, "{filter:?}");
        }
    }
}

#[tokio::test]
async fn a_summary_has_only_the_beginning_of_an_error() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    let failure = AttemptFailure { error: "ä".repeat(JobSummary::MAX_ERROR + 1), ..failure(Next::Dead) };
    queue.store.fail(receipt(&claimed), failure).await.unwrap();
    let summary = queue.store.summaries(Filter::default()).await.unwrap().jobs.remove(0);
    assert_eq!(summary.error, Some("ä".repeat(JobSummary::MAX_ERROR)));
}

/// A claim ahead of a free slot is not a start.
#[tokio::test]
async fn a_claimed_job_is_shown_as_pending_until_its_guest_starts() {
    let queue = Queue::fresh();
    queue.store.register(&tester()).await.unwrap();
    for _ in 0..3 {
        queue.add(job("work")).await;
    }
    let claimed = queue.claim(2).await;
    queue.store.started(&claimed[0].lease);
    let shown = async |id: &Id| {
        let found = queue.job(id).await;
        assert_eq!(queue.store.history(id).await.unwrap().unwrap().0, found);
        assert!(queue.all().await.contains(&found));
        (found.status, found.started_at.is_some(), found.lease_until.is_some(), found.worker.is_some())
    };
    assert_eq!(shown(&claimed[0].id).await, (Status::Running, true, true, true));
    assert_eq!(shown(&claimed[1].id).await, (Status::Pending, false, true, true));
    let listed = async |status, order| {
        let filter = Filter { states: vec![status], order, ..Filter::default() };
        let listed = queue.store.list(filter.clone()).await.unwrap().jobs.len();
        assert_eq!(queue.store.matching(filter, 9).await.unwrap(), listed);
        listed
    };
    for (status, order, expected) in [
        (Status::Running, Order::Created, 1),
        (Status::Pending, Order::Created, 2),
        (Status::Pending, Order::Scheduled, 2),
        (Status::Running, Order::Scheduled, 0),
    ] {
        assert_eq!(listed(status, order).await, expected, "{status} {order:?}");
    }
    let overview = queue.store.overview().await.unwrap();
    assert_eq!(overview.counts, Counts::from([(Status::Pending, 2), (Status::Running, 1)]));
    queue.store.started(&claimed[1].lease);
    assert_eq!(queue.store.overview().await.unwrap().counts, queue.store.counts().await.unwrap());
}

#[tokio::test]
async fn an_overview_counts_by_type_and_says_since_when_jobs_are_due() {
    let queue = Queue::fresh();
    assert_eq!(queue.store.overview().await.unwrap(), Overview::default());
    let start = Timestamp::now();
    queue.other_jobs().await;
    let due = Timestamp::from_millis(1_700_000_000_000);
    for due in [Due::In(HOUR), Due::At(due.after(HOUR)), Due::At(due)] {
        queue.add(NewJob { due, ..job("work") }).await;
    }
    let Overview { counts, types } = queue.store.overview().await.unwrap();
    assert_eq!(counts, queue.store.counts().await.unwrap());
    let names: Vec<_> = types.iter().map(|found| found.job_type.as_str()).collect();
    let unfinished = ["dead", "failed", "pending", "running"].map(|status| format!("other-{status}"));
    assert_eq!(names[..4], unfinished);
    assert_eq!(types[0].counts, Counts::from([(Status::Dead, 1)]));
    assert_eq!(types[0].oldest_due, None);
    assert!(is_since(types[2].oldest_due.unwrap(), start));
    let work =
        TypeOverview { job_type: "work".into(), counts: Counts::from([(Status::Pending, 3)]), oldest_due: Some(due) };
    assert_eq!(types[4..], [work]);
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
