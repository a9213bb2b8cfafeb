//! Whether somebody has written.

use std::time::Duration;

use jobq::queue::ChangeCursor;
use tokio::time::timeout;

use super::{Queue, job};

const PACE: Duration = Duration::from_millis(1);

#[tokio::test]
async fn the_first_look_finds_a_change_and_the_next_waits_for_one() {
    let queue = Queue::fresh();
    let seen = queue.store.change(ChangeCursor::default(), PACE).await.unwrap();
    let next = queue.store.change(seen, PACE);
    tokio::pin!(next);
    assert!(timeout(Duration::from_millis(50), &mut next).await.is_err(), "nobody has written");
    queue.add(job("work")).await;
    next.await.unwrap();
}

#[tokio::test]
async fn a_claim_that_finds_nothing_is_no_change() {
    let queue = Queue::fresh();
    let seen = queue.store.change(ChangeCursor::default(), PACE).await.unwrap();
    queue.claim(1).await;
    assert!(timeout(Duration::from_millis(50), queue.store.change(seen, PACE)).await.is_err());
}

#[tokio::test]
async fn everybody_who_waits_is_told() {
    let queue = Queue::fresh();
    let seen = queue.store.change(ChangeCursor::default(), PACE).await.unwrap();
    let both =
        async { tokio::join!(queue.store.change(seen, PACE), queue.store.change(seen, Duration::from_secs(3600))) };
    tokio::pin!(both);
    assert!(timeout(Duration::from_millis(20), &mut both).await.is_err());
    queue.add(job("work")).await;
    let (one, two) = both.await;
    one.unwrap();
    two.unwrap();
}
