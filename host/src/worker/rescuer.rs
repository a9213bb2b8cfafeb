//! Takes back the jobs of daemons that died.

use std::sync::Arc;

use super::pool::Shared;

/// Attempts given up for lost in one transaction.
const BATCH: usize = 200;

/// Fails every attempt whose lease has expired, and wakes the pool if any can run again.
pub(super) async fn rescue(shared: &Shared) {
    let policies = Arc::new(shared.rules.load().policies());
    loop {
        let rescued = match shared.store.rescue(policies.clone(), BATCH).await {
            Ok(rescued) => rescued,
            Err(error) => {
                tracing::warn!("cannot look for lost jobs: {error}");
                return;
            }
        };
        for lost in &rescued {
            let worker = lost.worker.as_deref().unwrap_or("an unknown worker");
            tracing::warn!("job {} ({}) was lost by {worker} and is {} now", lost.id, lost.job_type, lost.status);
        }
        if !rescued.is_empty() {
            shared.wake.notify_one();
        }
        if rescued.len() < BATCH {
            return;
        }
    }
}
