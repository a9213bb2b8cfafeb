//! Tells the command line what only this daemon knows: its slots and the state of its plugins.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::Options;
use super::pool::Shared;
use crate::plugins::{Entry, State};
use crate::queue::{Daemon, PluginReport, Timestamp};

/// How often it is told when nothing changes; whoever was not heard of for some of these is taken for gone.
const BEAT: Duration = Duration::from_secs(5);

/// Announces this daemon, for ever: at each change of a plugin and at least once a beat.
pub(super) async fn announce(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) {
    loop {
        let daemon = portrait(&shared, options.borrow().concurrency.get());
        if let Err(error) = shared.store.announce(daemon).await {
            tracing::warn!("cannot announce this daemon: {error}");
        }
        _ = tokio::time::timeout(BEAT, shared.registry.changed()).await;
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
        plugins: shared.registry.entries().into_iter().map(|(job_type, entry)| report(job_type, &entry)).collect(),
    }
}

fn report(job_type: String, entry: &Entry) -> PluginReport {
    PluginReport {
        job_type,
        file: entry.file.clone(),
        state: entry.state.as_str().to_owned(),
        digest: entry.version.as_ref().map(|version| hex::encode(version.digest())),
        reason: match &entry.state {
            State::Broken(reason) => Some(reason.clone()),
            _ => None,
        },
        since: timestamp(entry.since),
        attempts: entry.version.as_ref().map_or(0, |version| version.attempts()),
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
