//! Keeps what runs alive and heard: renews leases, writes down logs and progress, stops what was cancelled or taken over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::clock::Clock;
use super::pool::Shared;
use super::{Options, rescuer};
use crate::queue::{LogLine, LogSource, Progress, Stale, StoreError, Timestamp};
use crate::sandbox::{Line, Source, Tap};

/// How often running attempts are heard and looked after. Logs, progress and a cancel arrive within a second.
const BEAT: Duration = Duration::from_millis(500);

/// How long a handler may go on after its job was cancelled.
const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(5);

/// Looks after the leases of this pool, and then after those that others have lost, for ever.
pub(super) async fn keep(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) {
    let mut clock = Clock::new();
    let mut renewed = Instant::now();
    let mut rescue_from = Instant::now();
    let mut last_beat = Instant::now();
    let mut rescued = Instant::now();
    loop {
        let lease = options.borrow().lease;
        let beat = BEAT.min(lease / 4);
        tokio::time::sleep(beat).await;
        listen(&shared).await;
        let asked = Instant::now();
        // Who was held up, or was set to another time, renews first and gives others the time to do the same.
        let held_up = clock.jumped() || asked - last_beat > beat + lease / 3;
        last_beat = asked;
        if held_up {
            tracing::warn!(
                "the clock has jumped, or the database was locked; lost jobs are looked for in {lease:?} again"
            );
            rescue_from = asked + lease;
        }
        let renew = held_up || renewed.elapsed() >= lease / 3;
        match check(&shared, renew.then_some(lease)).await {
            Ok(stale) => {
                stale.into_iter().for_each(|stale| end(&shared, stale));
                renewed = if renew { asked } else { renewed };
            }
            Err(error) => tracing::warn!("cannot look after running attempts: {error}"),
        }
        let is_sure = Instant::now() >= rescue_from && renewed.elapsed() < lease / 2;
        if is_sure && rescued.elapsed() >= beat {
            rescued = Instant::now();
            rescuer::rescue(&shared).await;
        }
    }
}

/// Finds out which leases no longer hold; with `renew`, the others hold for that much longer.
async fn check(shared: &Shared, renew: Option<Duration>) -> Result<Vec<Stale>, StoreError> {
    let leases = shared.live.leases();
    match renew {
        _ if leases.is_empty() => Ok(Vec::new()),
        Some(lease) => shared.store.renew(leases, lease).await,
        None => shared.store.stale(leases).await,
    }
}

fn end(shared: &Shared, stale: Stale) {
    let Some(tap) = shared.live.stale(&stale.lease) else { return };
    if !stale.cancelled {
        tap.stop();
        return;
    }
    if tap.cancel() {
        tokio::spawn(async move {
            tokio::time::sleep(GRACE_AFTER_CANCEL).await;
            tap.stop();
        });
    }
}

/// Writes down what running attempts have said since the last time.
async fn listen(shared: &Shared) {
    let heard: Vec<Progress> = shared
        .live
        .taps()
        .into_iter()
        .map(|(lease, tap)| Progress { lease, lines: lines(&tap), progress: tap.take_progress() })
        .filter(|said| !said.lines.is_empty() || said.progress.is_some())
        .collect();
    if heard.is_empty() {
        return;
    }
    if let Err(error) = shared.store.record(heard).await {
        tracing::warn!("log lines of running attempts are lost: {error}");
    }
}

/// Takes what a guest has logged, as the store keeps it.
pub(super) fn lines(tap: &Tap) -> Vec<LogLine> {
    tap.take_lines().into_iter().map(log_line).collect()
}

fn log_line(line: Line) -> LogLine {
    let since_epoch = line.time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    LogLine {
        attempt: 0,
        lease: 0,
        time: Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)),
        source: match line.source {
            Source::Log => LogSource::Log,
            Source::Stdout => LogSource::Stdout,
            Source::Stderr => LogSource::Stderr,
        },
        level: line.level,
        message: line.message,
    }
}
