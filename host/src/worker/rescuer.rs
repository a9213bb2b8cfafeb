//! Takes back the jobs of daemons that died.

use std::sync::Arc;
use std::time::Duration;

use super::pool::Shared;

/// No daemon grants a longer lease: the most that `worker.lease` takes.
const MAX_LEASE: Duration = Duration::from_secs(86_400);

/// Attempts given up for lost in one transaction.
const BATCH: usize = 200;

/// Fails every attempt whose lease has expired, and wakes the pool if any can run again.
pub(super) async fn rescue(shared: &Shared) {
    let policies = Arc::new(shared.rules.load().policies());
    loop {
        let rescued = match shared.store.rescue(policies.clone(), MAX_LEASE, BATCH).await {
            Ok(rescued) => rescued,
            Err(error) => {
                tracing::warn!("cannot look for lost jobs: {error}");
                return;
            }
        };
        for lost in &rescued {
            let worker = lost.worker.as_deref().unwrap_or("an unknown worker");
            let (id, job_type) = (lost.id.as_str().escape_debug(), lost.job_type.escape_debug());
            tracing::warn!("job {id} ({job_type}) was lost by {} and is {} now", worker.escape_debug(), lost.status);
        }
        if !rescued.is_empty() {
            shared.wake.notify_one();
        }
        if rescued.len() < BATCH {
            return;
        }
    }
}
