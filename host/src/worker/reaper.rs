//! Takes back the jobs of daemons that died or stopped renewing.

use std::sync::Arc;
use std::time::Duration;

use super::pool::Shared;
use crate::queue::StoreError;

/// Attempts ended in one transaction.
const BATCH: usize = 200;

/// A lease that lies further ahead than so many of our own was granted before the clock was set back.
/// Daemons on one queue may have different leases, but hardly by that much.
pub(super) const LONGEST_LEASE: u32 = 10;

/// Ends every attempt whose daemon is proved dead and, where `judged` says how long leases are, every one whose lease has
/// expired; wakes the pool if any can run again.
///
/// # Errors
/// When the store fails; that has been told.
pub(super) async fn reap(shared: &Shared, judged: Option<Duration>) -> Result<(), StoreError> {
    let policies = Arc::new(shared.rules.load().policies());
    let longest = judged.map(|lease| lease * LONGEST_LEASE);
    loop {
        let rescued = match shared.store.rescue(policies.clone(), longest, BATCH).await {
            Ok(rescued) => rescued,
            Err(error) => {
                tracing::warn!("cannot look for lost jobs: {error}");
                shared.note(&error);
                return Err(error);
            }
        };
        rescued.iter().for_each(|rescued| shared.events.rescued(rescued));
        if !rescued.is_empty() {
            shared.wake.notify_one();
        }
        if rescued.len() < BATCH {
            return Ok(());
        }
    }
}
