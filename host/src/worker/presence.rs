//! Tells the command line what only this daemon knows, its slots and the state of its plugins, and the operator what the
//! store has to say about itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::WorkerOptions;
use super::pool::Shared;
use crate::queue::{Daemon, Timestamp};

/// How often it is told when nothing changes; whoever was not heard of for some of these is taken for gone.
const BEAT: Duration = Duration::from_secs(5);

/// Changes that follow each other within this time are told together.
const BREATH: Duration = Duration::from_millis(250);

/// Announces this daemon: at each change of a plugin and at least once a beat, until the queue is gone.
pub(super) async fn announce(shared: Arc<Shared>, mut options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut told = None;
    let mut changes = shared.handlers.changes();
    loop {
        match shared.store.health().await {
            Ok(remark) if remark.is_some() && told.is_none() => told = remark.inspect(|text| tracing::warn!("{text}")),
            Ok(remark) => told = told.and(remark),
            Err(error) if error.is_fatal() => return shared.note(&error),
            Err(error) => tracing::warn!("cannot look after the queue: {error}"),
        }
        let daemon = portrait(&shared, &options.borrow_and_update().clone());
        if let Err(error) = shared.store.announce(daemon).await {
            tracing::warn!("cannot announce this daemon: {error}");
        }
        // Other settings may serve other types or have other slots.
        tokio::select! {
            _ = changes.changed() => {}
            Ok(()) = options.changed() => {}
            () = tokio::time::sleep(BEAT) => {}
        }
        tokio::time::sleep(BREATH).await;
    }
}

fn portrait(shared: &Shared, options: &WorkerOptions) -> Daemon {
    let mut plugins = shared.handlers.report();
    plugins.retain(|plugin| options.types.includes(&plugin.job_type));
    let running = u32::try_from(shared.leases().running().count()).unwrap_or(u32::MAX);
    Daemon {
        worker: shared.worker.to_string(),
        pid: std::process::id(),
        started_at: shared.started_at,
        seen_at: Timestamp::now(),
        slots: options.concurrency.get(),
        // An attempt whose end is being written holds its lease, but no slot any more.
        busy: running.min(options.concurrency.get()),
        plugins,
    }
}
