//! Retention: deletes finished jobs that are old enough, in small batches that hold nobody up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Options;
use super::pool::Shared;

/// How often finished jobs are looked at.
const ROUND: Duration = Duration::from_secs(60);

/// Jobs deleted in one transaction.
const BATCH: usize = 500;

/// The pause between two batches, so that others get their turn.
const PAUSE: Duration = Duration::from_millis(20);

/// Cleans up, for ever.
pub(super) async fn clean(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) {
    let mut told = BTreeSet::new();
    loop {
        let retention = options.borrow().retention;
        let more = match shared.store.prune(retention, BATCH).await {
            Ok(pruned) => {
                for obstacle in pruned.obstacles {
                    if told.insert(obstacle.clone()) {
                        tracing::warn!("old jobs that cannot be deleted are kept: {obstacle}");
                    }
                }
                pruned.more
            }
            Err(error) => {
                tracing::warn!("cannot delete old jobs: {error}");
                false
            }
        };
        tokio::time::sleep(if more { PAUSE } else { ROUND }).await;
    }
}
