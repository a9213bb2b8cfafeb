//! Gives back leases whose guest never started.

use std::time::Duration;

use super::pool::Shared;
use crate::queue::Lease;

/// The pause before the second try, and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Gives `leases` back; as long as the disk or a lock stands in the way, again and again.
pub(super) async fn release(shared: &Shared, leases: Vec<Lease>) {
    let (mut pause, longest) = PAUSE;
    loop {
        match shared.store.release(leases.clone()).await {
            Ok(()) => {
                shared.events.released(leases.len());
                break;
            }
            Err(error) if error.is_transient() => {
                tracing::warn!("cannot give back {} jobs, trying again: {error}", leases.len());
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(longest);
            }
            Err(error) => {
                tracing::error!("cannot give back {} jobs: {error}", leases.len());
                shared.note(&error);
                break;
            }
        }
    }
    let mut held = shared.leases();
    leases.iter().for_each(|lease| held.remove(lease));
}
