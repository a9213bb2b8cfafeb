//! Keeps what runs alive and heard: renews leases, writes down logs and progress, stops what was cancelled or taken over.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use super::machine::clock_jump::Jump;
use super::machine::heartbeat::{Beat, Heartbeat};
use super::pool_state::PoolState;
use super::{WorkerOptions, reaper};
use crate::queue::{Lease, LogLine, LogSource, Progress, StaleLease, StoreError, Timestamp};
use crate::sandbox::{Line, Source, Tap};

/// How long a handler may go on after its job was cancelled.
const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(5);

/// Looks after the leases of this pool, and then after those that others have lost, for ever.
pub(super) async fn beat(pool: Arc<PoolState>, options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut machine = Heartbeat::new(options.borrow().lease, SystemTime::now(), Instant::now());
    loop {
        let lease = options.borrow().lease;
        let judged = machine.may_rescue_expired(SystemTime::now(), Instant::now()).then_some(lease);
        if reaper::reap(&pool, judged).await.is_err() {
            machine.failed(Instant::now());
        }
        tokio::time::sleep(machine.pause()).await;
        let lease = options.borrow().lease;
        machine.set_lease(lease);
        listen(&pool).await;
        let asked = Instant::now();
        let beat = machine.beat(SystemTime::now(), asked);
        tell(&pool, beat, lease).await;
        let leases = pool.leases().all();
        match check(&pool, &leases, beat.renew.then_some(lease)).await {
            Ok(stale) => {
                stale.into_iter().for_each(|stale| end(&pool, &stale));
                if beat.renew {
                    machine.renewed(asked);
                    pool.leases().renewed(&leases, asked, lease);
                }
            }
            Err(error) => {
                machine.failed(Instant::now());
                tracing::warn!("cannot look after running attempts: {error}");
                pool.stop_if_fatal(&error);
            }
        }
    }
}

async fn tell(pool: &PoolState, beat: Beat, lease: Duration) {
    if beat.jump.is_some() {
        // Other jobs are due now.
        pool.wake.notify_one();
    }
    match beat.jump {
        Some(Jump::Ahead(by)) => {
            pool.jumped_ahead.notify_one();
            tracing::warn!(
                "the system clock was set ahead by {by:.0?}: lost jobs and old jobs are left alone for {lease:?}"
            );
        }
        Some(Jump::Back(by)) => {
            // What cannot be counted is told all the same.
            let waiting = pool.store.due_within(by).await.map_or("jobs".to_owned(), |count| format!("{count} jobs"));
            tracing::warn!(
                "the system clock was set back by {by:.0?}: {waiting} that were due by then wait that much longer"
            );
        }
        None if beat.postpones_rescue => {
            tracing::warn!(
                "this process or its database stood still for a while: lost jobs are left alone for {lease:?}"
            );
        }
        None => {}
    }
}

/// Finds out which leases no longer hold; with `renew`, the others hold for that much longer.
async fn check(pool: &PoolState, leases: &[Lease], renew: Option<Duration>) -> Result<Vec<StaleLease>, StoreError> {
    match renew {
        _ if leases.is_empty() => Ok(Vec::new()),
        Some(lease) => pool.store.renew(leases.to_vec(), lease).await,
        None => pool.store.stale(leases.to_vec()).await,
    }
}

/// A cancelled guest is told and has a while to end; one whose job is somebody else's by now is stopped at once.
fn end(pool: &PoolState, stale: &StaleLease) {
    let Some(tap) = pool.leases().lost(&stale.lease) else { return };
    if !stale.cancelled {
        tap.stop();
    } else if tap.cancel() {
        tokio::spawn(async move {
            tokio::time::sleep(GRACE_AFTER_CANCEL).await;
            tap.stop();
        });
    }
}

/// Writes down what running attempts have said since the last time.
async fn listen(pool: &PoolState) {
    let heard: Vec<Progress> = pool
        .leases()
        .running()
        .map(|(lease, tap)| Progress { lease: lease.clone(), lines: lines(tap), progress: tap.take_progress() })
        .filter(|said| !said.lines.is_empty() || said.progress.is_some())
        .collect();
    if heard.is_empty() {
        return;
    }
    if let Err(error) = pool.store.save_progress(heard).await {
        tracing::warn!("log lines of running attempts are lost: {error}");
        pool.stop_if_fatal(&error);
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
