//! Ends the attempts of daemons that died or stopped renewing their leases.

use std::sync::Arc;
use std::time::Duration;

use super::pool_state::PoolState;
use crate::queue::{Status, StoreError};

/// The most attempts ended in one transaction.
const BATCH: usize = 200;

/// A lease that expires later than this many of our own leases from now was granted before the clock was set back.
/// Daemons on one queue can have different lease settings, but hardly ones that differ by this factor.
pub(super) const MAX_LEASE_FACTOR: u32 = 10;

/// Ends every attempt whose daemon is proved dead and, with `expired`, every attempt whose lease has expired. `expired` is the
/// length of this daemon's leases. Wakes the pool if a job can run again.
///
/// # Errors
/// When the store fails. The error is already logged.
pub(super) async fn reap(pool: &PoolState, expired: Option<Duration>) -> Result<(), StoreError> {
    let policies = Arc::new(pool.job_types.load().policies());
    let max_lease = expired.map(|lease| lease * MAX_LEASE_FACTOR);
    loop {
        let rescued = match pool.store.rescue(policies.clone(), max_lease, BATCH).await {
            Ok(rescued) => rescued,
            Err(error) => {
                tracing::warn!("cannot check for lost jobs: {error}");
                pool.stop_if_fatal(&error);
                return Err(error);
            }
        };
        for lost in &rescued {
            let worker = lost.worker.as_deref().unwrap_or("an unknown worker").escape_debug();
            let (id, job_type) = (lost.id.as_str().escape_debug(), lost.job_type.escape_debug());
            match lost.status {
                Status::Pending => tracing::info!(
                    "job {id} ({job_type}) is pending again: {worker} claimed it and died before starting it"
                ),
                status => tracing::warn!("job {id} ({job_type}) is {status}: its attempt was lost with {worker}"),
            }
        }
        if !rescued.is_empty() {
            pool.wake.notify_one();
        }
        if rescued.len() < BATCH {
            return Ok(());
        }
    }
}
