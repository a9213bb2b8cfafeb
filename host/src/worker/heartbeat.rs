//! Renews the leases of this pool, stores logs and progress of running attempts, stops cancelled guests, and has the reaper
//! rescue the jobs of other daemons.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use super::machine::clock_jump::Jump;
use super::machine::heartbeat::{Beat, Heartbeat};
use super::pool_state::PoolState;
use super::{WorkerOptions, reaper};
use crate::queue::{Lease, LogLine, LogSource, Progress, StaleLease, StoreError, Timestamp};
use crate::sandbox::{Line, Source, Tap};

/// How long a handler may continue after its job was cancelled.
const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(5);

/// Runs until it is cancelled.
pub(super) async fn run(pool: Arc<PoolState>, options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut machine = Heartbeat::new(options.borrow().lease, SystemTime::now(), Instant::now());
    loop {
        let lease = options.borrow().lease;
        let expired = machine.may_rescue_expired(SystemTime::now(), Instant::now()).then_some(lease);
        if reaper::reap(&pool, expired).await.is_err() {
            machine.failed(Instant::now());
        } else {
            machine.set_idle(is_idle(&pool).await);
        }
        wait(&pool, &machine).await;
        let lease = options.borrow().lease;
        machine.set_lease(lease);
        store_progress(&pool).await;
        let asked = Instant::now();
        let beat = machine.beat(SystemTime::now(), asked);
        report(&pool, beat, lease).await;
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
                tracing::warn!("cannot check on running attempts: {error}");
                pool.stop_if_fatal(&error);
            }
        }
    }
}

/// Whether no job runs, neither here nor under another daemon. If the store fails, something may be running.
async fn is_idle(pool: &PoolState) -> bool {
    pool.leases().all().is_empty() && matches!(pool.store.has_running().await, Ok(false))
}

/// Waits until the next heartbeat is due. A write to the queue ends an idle pause.
async fn wait(pool: &PoolState, machine: &Heartbeat) {
    let pause = tokio::time::sleep(machine.pause());
    if !machine.is_idle() {
        return pause.await;
    }
    tokio::select! {
        () = pause => {}
        () = pool.queue_changed.notified() => tokio::time::sleep(machine.busy_pause()).await,
    }
}

/// Logs what is unusual about a heartbeat, and wakes the dispatcher if other jobs are due now.
async fn report(pool: &PoolState, beat: Beat, lease: Duration) {
    if beat.jump.is_some() {
        pool.wake.notify_one();
    }
    match beat.jump {
        Some(Jump::Ahead(by)) => {
            tracing::warn!(
                "the system clock was set ahead by {by:.0?}: expired leases and old jobs are left alone for {lease:?}"
            );
        }
        Some(Jump::Back(by)) => {
            let jobs = pool.store.due_within(by).await.map_or("jobs".to_owned(), |count| format!("{count} jobs"));
            tracing::warn!(
                "the system clock was set back by {by:.0?}: {jobs} that were due within that time start that much later"
            );
        }
        None if beat.postpones_rescue => {
            tracing::warn!("this process or its database was blocked: expired leases are left alone for {lease:?}");
        }
        None => {}
    }
}

/// Returns the leases that are no longer valid. With `renew`, extends the others by that much.
async fn check(pool: &PoolState, leases: &[Lease], renew: Option<Duration>) -> Result<Vec<StaleLease>, StoreError> {
    match renew {
        _ if leases.is_empty() => Ok(Vec::new()),
        Some(lease) => pool.store.renew(leases.to_vec(), lease).await,
        None => pool.store.stale(leases.to_vec()).await,
    }
}

/// Tells a cancelled guest to end and stops it after a grace period. Stops a guest whose job was taken over at once.
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

/// Stores what running attempts have logged and reported since the last heartbeat.
async fn store_progress(pool: &PoolState) {
    let progress: Vec<Progress> = pool
        .leases()
        .running()
        .map(|(lease, tap)| Progress { lease: lease.clone(), lines: lines(tap), progress: tap.take_progress() })
        .filter(|new| !new.lines.is_empty() || new.progress.is_some())
        .collect();
    if progress.is_empty() {
        return;
    }
    if let Err(error) = pool.store.save_progress(progress).await {
        tracing::warn!("cannot store log lines of running attempts, they are lost: {error}");
        pool.stop_if_fatal(&error);
    }
}

/// Takes the lines that a guest has logged, in the store's form.
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
