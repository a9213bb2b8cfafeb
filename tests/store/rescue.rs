//! Rescue: workers that stopped renewing or are proved dead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jobq::queue::{
    AttemptWrite, Claim, Claimed, Id, NewJob, Next, Outcome, Rescued, RetryPolicies, RetryPolicy, Status, Timestamp,
    WorkerName,
};

use super::{DAY, Queue, claim, failure, is_since, job, job_type, policies, receipt, tester};

impl Queue {
    /// Enqueues a job and claims it with a lease that expires at once.
    async fn abandoned(&self, job: NewJob) -> Claimed {
        let claim = Claim { lease: Duration::ZERO, ..claim(job.job_type.as_str(), 1) };
        self.add(job).await;
        self.store.claim(claim).await.unwrap().jobs.remove(0)
    }

    async fn rescue(&self, limit: usize) -> Vec<Rescued> {
        self.store.rescue(policies(), Some(DAY), limit).await.unwrap()
    }
}

#[tokio::test]
async fn a_lost_attempt_counts_and_is_retried() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let lost = queue.abandoned(job("work")).await;
    let start = Timestamp::now();
    let expected =
        Rescued { id: lost.id.clone(), job_type: "work".into(), worker: Some("tester".into()), status: Status::Failed };
    assert_eq!(queue.rescue(9).await, [expected]);
    let stored = queue.job(&lost.id).await;
    assert_eq!((stored.status, stored.attempts, stored.lease_until), (Status::Failed, 1, None));
    assert!(stored.error.unwrap().contains("lost"));
    assert!(is_since(stored.scheduled_at, start));
    assert_eq!(queue.outcomes(&lost.id).await, [Outcome::Lost]);
    assert_eq!(queue.store.complete(receipt(&lost), "late".into(), vec![]).await.unwrap(), AttemptWrite::LeaseLost);
    assert_eq!(queue.rescue(9).await, []);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_valid_lease_is_never_touched() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    let before = queue.job(&claimed.id).await;
    assert_eq!(queue.rescue(9).await, []);
    assert_eq!(queue.job(&claimed.id).await, before);
}

#[tokio::test]
async fn a_lease_longer_than_any_daemon_grants_is_expired() {
    let queue = Queue::fresh();
    let id = queue.add(job("work")).await;
    queue.store.claim(Claim { lease: DAY, ..claim("work", 1) }).await.unwrap();
    let watch = queue.other_jobs().await;
    assert_eq!(queue.store.rescue(policies(), Some(DAY), 9).await.unwrap(), [], "a lease as long as any can be");
    let rescued = queue.store.rescue(policies(), Some(DAY / 2), 9).await.unwrap();
    assert_eq!(rescued.iter().map(|job| (&job.id, job.status)).collect::<Vec<_>>(), [(&id, Status::Failed)]);
    assert_eq!(queue.outcomes(&id).await, [Outcome::Lost]);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_job_that_keeps_killing_its_worker_is_dead_in_the_end() {
    let queue = Queue::fresh();
    let mut lost = queue.abandoned(job("work")).await;
    for round in 1..=3 {
        let status = queue.rescue(9).await.remove(0).status;
        assert_eq!(status, if round == 3 { Status::Dead } else { Status::Failed });
        if round < 3 {
            let claim = Claim { lease: Duration::ZERO, ..claim("work", 1) };
            lost = queue.store.claim(claim).await.unwrap().jobs.remove(0);
        }
    }
    let stored = queue.job(&lost.id).await;
    assert_eq!((stored.status, stored.attempts), (Status::Dead, 3));
    assert!(stored.completed_at.is_some());
    assert_eq!(queue.outcomes(&lost.id).await, [Outcome::Lost; 3]);
}

#[tokio::test]
async fn the_jobs_own_limit_and_dead_on_decide() {
    let queue = Queue::fresh();
    let dead_on = RetryPolicy { dead_on: BTreeSet::from([Outcome::Lost]), ..RetryPolicy::default() };
    let by_type = BTreeMap::from([(job_type("fragile"), dead_on)]);
    let policies = Arc::new(RetryPolicies { by_type, ..RetryPolicies::default() });
    queue.abandoned(NewJob { max_attempts: Some(1), ..job("once") }).await;
    queue.abandoned(job("fragile")).await;
    queue.abandoned(job("work")).await;
    let rescued = queue.store.rescue(policies, Some(DAY), 9).await.unwrap();
    let ends: BTreeMap<&str, Status> = rescued.iter().map(|job| (job.job_type.as_str(), job.status)).collect();
    assert_eq!(ends, BTreeMap::from([("once", Status::Dead), ("fragile", Status::Dead), ("work", Status::Failed)]));
}

#[tokio::test]
async fn leases_that_expired_first_are_rescued_first() {
    let queue = Queue::fresh();
    let names = ["a", "b", "c"];
    for name in names {
        queue.add(job(name)).await;
    }
    let mut expected: Vec<Id> = Vec::new();
    for name in ["b", "c", "a"] {
        let claim = Claim { lease: Duration::ZERO, ..claim(name, 1) };
        expected.push(queue.store.claim(claim).await.unwrap().jobs.remove(0).id);
        let claimed_at = Timestamp::now();
        while Timestamp::now() == claimed_at {
            tokio::task::yield_now().await;
        }
    }
    let mut rescued = Vec::new();
    for _ in names {
        rescued.extend(queue.rescue(1).await.into_iter().map(|job| job.id));
    }
    assert_eq!(rescued, expected, "whatever the order of insertion");
}

#[tokio::test]
async fn an_attempt_that_never_started_does_not_count_and_its_job_keeps_its_position() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    queue.store.register(&tester()).await.unwrap();
    let (ran, waited) = (queue.abandoned(last_attempt("work")).await, queue.abandoned(last_attempt("mail")).await);
    let before = queue.job(&waited.id).await;
    queue.store.started(&ran.lease);
    let ends: BTreeMap<Id, Status> = queue.rescue(9).await.into_iter().map(|job| (job.id, job.status)).collect();
    assert_eq!(ends, BTreeMap::from([(ran.id.clone(), Status::Dead), (waited.id.clone(), Status::Pending)]));
    assert_eq!(queue.outcomes(&ran.id).await, [Outcome::Lost]);
    let stored = queue.job(&waited.id).await;
    assert_eq!((stored.status, stored.attempts, stored.error), (Status::Pending, 0, None));
    assert_eq!((stored.scheduled_at, stored.lease), (before.scheduled_at, before.lease));
    assert_eq!((stored.lease_until, stored.worker, stored.started_at), (None, None, None));
    assert_eq!(queue.outcomes(&waited.id).await, []);
    assert_eq!(queue.store.complete(receipt(&waited), "late".into(), vec![]).await.unwrap(), AttemptWrite::LeaseLost);
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn a_start_note_does_not_apply_to_the_next_attempt() {
    let queue = Queue::fresh();
    queue.store.register(&tester()).await.unwrap();
    let first = queue.running().await;
    queue.store.started(&first.lease);
    let again = failure(Next::Retry(Duration::ZERO));
    assert_eq!(queue.store.fail(receipt(&first), again).await.unwrap(), AttemptWrite::Done);
    queue.store.ended(&first.lease);
    let claim = Claim { lease: Duration::ZERO, ..claim("work", 1) };
    queue.store.claim(claim).await.unwrap();
    assert_eq!(queue.rescue(9).await[0].status, Status::Pending);
    let stored = queue.job(&first.id).await;
    assert_eq!((stored.attempts, stored.error.as_deref()), (1, Some("no luck")), "as the first attempt left it");
    assert_eq!(queue.outcomes(&first.id).await, [Outcome::Failed]);
}

#[tokio::test]
async fn an_unregistered_worker_counts_as_having_started() {
    let queue = Queue::fresh();
    let lost = queue.abandoned(job("work")).await;
    queue.store.register(&WorkerName::new("somebody else")).await.unwrap();
    assert_eq!(queue.rescue(9).await[0].status, Status::Failed);
    assert_eq!(queue.outcomes(&lost.id).await, [Outcome::Lost]);
}

fn last_attempt(name: &str) -> NewJob {
    NewJob { max_attempts: Some(1), ..job(name) }
}
