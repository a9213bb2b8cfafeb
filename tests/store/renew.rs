//! Renew.

use std::time::Duration;

use jobq::queue::{Claim, Lease, StaleLease, Status, Timestamp};

use super::{DAY, HOUR, Queue, claim, is_since, job, policies, tester};

#[tokio::test]
async fn renew_extends_a_lease() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let claimed = queue.running().await;
    let start = Timestamp::now();
    assert_eq!(queue.store.renew(vec![claimed.lease.clone()], HOUR * 5).await.unwrap(), []);
    let stored = queue.job(&claimed.id).await;
    assert!(is_since(stored.lease_until.unwrap().before(HOUR * 5), start));
    assert_eq!((stored.status, stored.lease), (Status::Running, claimed.lease.token));
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn an_expired_lease_can_be_renewed_until_it_is_rescued() {
    let queue = Queue::fresh();
    queue.add(job("work")).await;
    let claim = Claim { lease: Duration::ZERO, ..claim("work", 1) };
    let lease = queue.store.claim(claim).await.unwrap().jobs.remove(0).lease;
    assert_eq!(queue.store.renew(vec![lease.clone()], HOUR).await.unwrap(), []);
    assert_eq!(queue.store.rescue(policies(), Some(DAY), 9).await.unwrap(), []);
    assert_eq!(queue.store.stale(vec![lease]).await.unwrap(), []);
}

#[tokio::test]
async fn stale_leases_have_their_reason() {
    for status in Status::ALL.into_iter().filter(|status| *status != Status::Running) {
        let queue = Queue::fresh();
        let lease = queue.in_state(status).await.lease;
        let good = queue.running_again().await;
        let gone = Lease { job: queue.no_job().await, token: 1, worker: tester() };
        let before = queue.all().await;
        let all = vec![lease.clone(), good, gone.clone()];
        let expected = [
            StaleLease { lease, cancelled: status == Status::Cancelled },
            StaleLease { lease: gone, cancelled: false },
        ];
        assert_eq!(queue.store.stale(all.clone()).await.unwrap(), expected, "{status}");
        assert_eq!(queue.all().await, before);
        assert_eq!(queue.store.renew(all, HOUR).await.unwrap(), expected, "{status}");
    }
}

#[tokio::test]
async fn a_lease_is_stale_once_another_worker_runs_the_job() {
    let queue = Queue::fresh();
    let first = queue.in_state(Status::Pending).await;
    let second = queue.claim(1).await.remove(0);
    assert_eq!(first.lease.job, second.lease.job);
    let stale = queue.store.renew(vec![first.lease.clone(), second.lease], HOUR).await.unwrap();
    assert_eq!(stale, [StaleLease { lease: first.lease, cancelled: false }]);
}

impl Queue {
    /// A running job of a type without other jobs.
    async fn running_again(&self) -> Lease {
        self.add(job("again")).await;
        self.store.claim(claim("again", 1)).await.unwrap().jobs.remove(0).lease
    }
}
