//! Whether another process has written.

use super::{Queue, job};

#[tokio::test]
async fn ones_own_writes_are_no_change_from_elsewhere() {
    let queue = Queue::fresh();
    assert!(!queue.store.changed_elsewhere().await.unwrap());
    queue.add(job("work")).await;
    queue.claim(1).await;
    assert!(!queue.store.changed_elsewhere().await.unwrap());
}
