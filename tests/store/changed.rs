//! Waiting for changes.

use std::time::Duration;

use jobq::queue::ChangeCursor;
use tokio::time::timeout;

use super::{Queue, job};

/// The timeout of a test.
const PATIENCE: Duration = Duration::from_secs(60);

const PACE: Duration = Duration::from_millis(1);
const NET: Duration = Duration::from_millis(1);

#[tokio::test]
async fn the_first_call_returns_at_once_and_the_next_waits() {
    let queue = Queue::fresh();
    let seen = queue.store.change(ChangeCursor::default(), PACE, NET).await.unwrap();
    let next = queue.store.change(seen, PACE, NET);
    tokio::pin!(next);
    assert!(timeout(Duration::from_millis(50), &mut next).await.is_err(), "nobody has written");
    queue.add(job("work")).await;
    next.await.unwrap();
}

#[tokio::test]
async fn an_empty_claim_is_not_a_change() {
    let queue = Queue::fresh();
    let seen = queue.store.change(ChangeCursor::default(), PACE, NET).await.unwrap();
    queue.claim(1).await;
    assert!(timeout(Duration::from_millis(50), queue.store.change(seen, PACE, NET)).await.is_err());
}

#[tokio::test]
async fn every_waiting_call_returns() {
    let queue = Queue::fresh();
    let seen = queue.store.change(ChangeCursor::default(), PACE, NET).await.unwrap();
    let both = async {
        tokio::join!(queue.store.change(seen, PACE, NET), queue.store.change(seen, PACE, Duration::from_secs(3600)))
    };
    tokio::pin!(both);
    assert!(timeout(Duration::from_millis(20), &mut both).await.is_err());
    queue.add(job("work")).await;
    let (one, two) = both.await;
    one.unwrap();
    two.unwrap();
}

#[tokio::test]
async fn a_dropped_call_misses_nothing() {
    const NEVER: Duration = Duration::from_secs(3600);
    let queue = Queue::fresh();
    let mut seen = queue.store.change(ChangeCursor::default(), PACE, NET).await.unwrap();
    for _ in 0..50 {
        queue.add(job("work")).await;
        for _ in 0..3 {
            // A notification could be lost between the look and the reply.
            let micros = fastrand::u64(0..300);
            if let Ok(change) = timeout(Duration::from_micros(micros), queue.store.change(seen, NEVER, NEVER)).await {
                change.unwrap();
            }
        }
        seen = timeout(PATIENCE, queue.store.change(seen, NEVER, NEVER)).await.expect("it was lost").unwrap();
    }
}
