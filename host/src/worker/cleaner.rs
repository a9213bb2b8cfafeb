//! Deletes finished jobs after their retention time, in small batches so that other writers don't wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::WorkerOptions;
use super::machine::retention::Retention;
use super::pool_state::PoolState;

/// The most jobs deleted in one transaction.
const BATCH: usize = 500;

/// Runs until it is cancelled.
pub(super) async fn clean(pool: Arc<PoolState>, options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut machine = Retention::new(Instant::now());
    let mut logged = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = pool.jumped_ahead.notified() => {
                machine.jumped_ahead(options.borrow().lease, Instant::now());
                continue;
            }
            () = tokio::time::sleep_until(machine.next().into()) => {}
        }
        let retention = options.borrow().retention;
        let more = match pool.store.prune(retention, BATCH).await {
            Ok(pruned) => {
                for obstacle in pruned.obstacles {
                    if logged.insert(obstacle.clone()) {
                        tracing::warn!("some old jobs cannot be deleted and are kept: {obstacle}");
                    }
                }
                pruned.more
            }
            Err(error) => {
                tracing::warn!("cannot delete old jobs: {error}");
                pool.stop_if_fatal(&error);
                false
            }
        };
        machine.deleted(more, Instant::now());
    }
}
