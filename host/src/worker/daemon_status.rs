//! Publishes what only this daemon knows, its slots and the state of its plugins, for the commands to read, and logs what the
//! store reports about its own health.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::WorkerOptions;
use super::pool_state::PoolState;
use crate::queue::{Daemon, Timestamp};

/// How often the status is written when nothing changes. Commands treat a daemon as gone after missing a few of these.
const INTERVAL: Duration = Duration::from_secs(5);

/// Changes within this time are written together.
const DEBOUNCE: Duration = Duration::from_millis(250);

/// Publishes the status after each change of a plugin and at least once per [`INTERVAL`], until the queue is lost.
pub(super) async fn publish(pool: Arc<PoolState>, options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut last_remark = None;
    let mut changes = pool.handlers.changes();
    loop {
        match pool.store.health().await {
            Ok(remark) => {
                if let (Some(text), None) = (&remark, &last_remark) {
                    tracing::warn!("{text}");
                }
                last_remark = remark;
            }
            Err(error) if error.is_fatal() => return pool.stop_if_fatal(&error),
            Err(error) => tracing::warn!("cannot check the health of the queue: {error}"),
        }
        let daemon = current_status(&pool, &options.borrow().clone());
        if let Err(error) = pool.store.announce(daemon).await {
            tracing::warn!("cannot publish the status of this daemon: {error}");
        }
        _ = tokio::time::timeout(INTERVAL, changes.changed()).await;
        tokio::time::sleep(DEBOUNCE).await;
    }
}

fn current_status(pool: &PoolState, options: &WorkerOptions) -> Daemon {
    let mut plugins = pool.handlers.report();
    plugins.retain(|plugin| options.types.includes(&plugin.job_type));
    Daemon {
        worker: pool.worker.to_string(),
        pid: std::process::id(),
        started_at: pool.started_at,
        seen_at: Timestamp::now(),
        slots: options.concurrency.get(),
        busy: u32::try_from(pool.leases().running().count()).unwrap_or(u32::MAX),
        plugins,
    }
}
