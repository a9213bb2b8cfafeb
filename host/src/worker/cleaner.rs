//! Retention: deletes finished jobs that are old enough, in small batches that hold nobody up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::WorkerOptions;
use super::machine::retention::Retention;
use super::pool::Shared;

/// Jobs deleted in one transaction, at most.
const BATCH: usize = 500;

/// Cleans up, for ever.
pub(super) async fn clean(shared: Arc<Shared>, options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut machine = Retention::new(Instant::now());
    let mut told = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = shared.jumped_ahead.notified() => {
                machine.jumped_ahead(options.borrow().lease, Instant::now());
                continue;
            }
            () = tokio::time::sleep_until(machine.next().into()) => {}
        }
        let retention = options.borrow().retention;
        let more = match shared.store.prune(retention, BATCH).await {
            Ok(pruned) => {
                shared.events.pruned(&pruned);
                for obstacle in pruned.obstacles {
                    if told.insert(obstacle.clone()) {
                        tracing::warn!("old jobs that cannot be deleted are kept: {obstacle}");
                    }
                }
                pruned.more
            }
            Err(error) => {
                tracing::warn!("cannot delete old jobs: {error}");
                shared.note(&error);
                false
            }
        };
        machine.deleted(more, Instant::now());
    }
}
