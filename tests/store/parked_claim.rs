//! Parked claims.

use std::time::Duration;

use jobq::queue::{ParkedClaim, Status};
use tokio::time::timeout;

use super::{Queue, claim, job};

#[tokio::test]
async fn an_added_job_is_leased_by_the_parked_claim() {
    let queue = Queue::fresh();
    let (standing, answer) = ParkedClaim::new(claim("work", 9));
    queue.store.park_claim(standing.clone());
    let id = queue.add(job("work")).await;
    assert_eq!(queue.store.find(&id).await.unwrap().unwrap().status, Status::Running);
    let claims = answer.await.unwrap().unwrap();
    assert_eq!(claims.jobs.iter().map(|claimed| &claimed.id).collect::<Vec<_>>(), [&id]);
    assert!(!standing.withdraw(), "it has been taken");
}

#[tokio::test]
async fn a_parked_claim_runs_once_and_replies_even_if_it_finds_nothing() {
    let queue = Queue::fresh();
    let (standing, answer) = ParkedClaim::new(claim("work", 9));
    queue.store.park_claim(standing);
    let other = queue.add(job("other")).await;
    assert!(answer.await.unwrap().unwrap().jobs.is_empty());
    let late = queue.add(job("work")).await;
    for id in [other, late] {
        assert_eq!(queue.store.find(&id).await.unwrap().unwrap().status, Status::Pending);
    }
}

#[tokio::test]
async fn a_withdrawn_claim_takes_nothing_and_does_not_reply() {
    let queue = Queue::fresh();
    let (standing, answer) = ParkedClaim::new(claim("work", 9));
    queue.store.park_claim(standing.clone());
    assert!(standing.withdraw());
    let id = queue.add(job("work")).await;
    assert_eq!(queue.store.find(&id).await.unwrap().unwrap().status, Status::Pending);
    assert!(answer.await.is_err() && standing.taken_at().is_none());
}

#[tokio::test]
async fn a_parked_claim_follows_the_order_of_claims() {
    let queue = Queue::fresh();
    let first = queue.add(job("work")).await;
    let (standing, answer) = ParkedClaim::new(claim("work", 1));
    queue.store.park_claim(standing);
    let second = queue.add(job("work")).await;
    assert_eq!(answer.await.unwrap().unwrap().jobs[0].id, first);
    assert_eq!(queue.store.find(&second).await.unwrap().unwrap().status, Status::Pending);
}

#[tokio::test]
async fn writes_that_add_no_job_do_not_run_it() {
    let queue = Queue::fresh();
    let id = queue.add(job("work")).await;
    let (standing, answer) = ParkedClaim::new(claim("work", 1));
    queue.store.park_claim(standing);
    queue.store.cancel(&id).await.unwrap();
    assert!(timeout(Duration::from_millis(20), answer).await.is_err());
}
