//! Tells the command line what only this daemon knows: its slots and the state of its plugins.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Options;
use super::pool::Shared;
use crate::queue::{Daemon, Timestamp};

/// How often it is told when nothing changes; whoever was not heard of for some of these is taken for gone.
const BEAT: Duration = Duration::from_secs(5);

/// Announces this daemon, for ever: at each change of a plugin and at least once a beat.
pub(super) async fn announce(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) {
    loop {
        let daemon = portrait(&shared, options.borrow().concurrency.get());
        if let Err(error) = shared.store.announce(daemon).await {
            tracing::warn!("cannot announce this daemon: {error}");
        }
        _ = tokio::time::timeout(BEAT, shared.handlers.changed()).await;
    }
}

fn portrait(shared: &Shared, slots: u32) -> Daemon {
    Daemon {
        worker: shared.worker.to_string(),
        pid: std::process::id(),
        started_at: shared.started_at,
        seen_at: Timestamp::now(),
        slots,
        busy: u32::try_from(shared.live.taps().len()).unwrap_or(u32::MAX),
        plugins: shared.handlers.report(),
    }
}
