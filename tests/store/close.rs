//! Close.

use std::time::Duration;

use jobq::queue::{ChangeCursor, StoreError};
use tokio::time::timeout;

use super::{Queue, claim, job};

#[tokio::test]
async fn a_closed_store_takes_no_more_and_keeps_nobody_waiting() {
    let queue = Queue::fresh();
    queue.add(job("work")).await;
    let net = Duration::from_secs(3600);
    let mut seen = ChangeCursor::default();
    while let Ok(newer) = timeout(Duration::from_millis(20), queue.store.change(seen, net, net)).await {
        seen = newer.unwrap();
    }
    let waiting = queue.store.change(seen, net, net);
    let (_, told) = tokio::join!(queue.store.close(), timeout(Duration::from_secs(60), waiting));
    assert!(matches!(told.unwrap(), Err(StoreError::Closed)));
    assert!(matches!(queue.store.enqueue(vec![job("work")]).await, Err(StoreError::Closed)));
    assert!(matches!(queue.store.claim(claim("work", 1)).await, Err(StoreError::Closed)));
    assert!(matches!(queue.store.counts().await, Err(StoreError::Closed)));
    queue.store.close().await;
}
