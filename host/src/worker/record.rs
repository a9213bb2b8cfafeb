//! The writes that end an attempt: its outcome, or giving back a lease whose guest never started.
//!
//! A full disk or a locked database must not lose an outcome, so both are retried until they succeed or cannot.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::attempt::Verdict;
use super::pool_state::PoolState;
use crate::queue::{AttemptFailure, AttemptWrite, Lease, NewJob, Next, Outcome, Receipt, StoreError};

/// The pause before the first retry. It doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between two retries.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Records the outcome of an attempt.
pub(super) async fn record(pool: &PoolState, receipt: Receipt, mut verdict: Verdict, follow_ups: Vec<NewJob>) {
    let mut retry = RetryPause(FIRST_PAUSE);
    loop {
        match write(pool, receipt.clone(), verdict.clone(), follow_ups.clone()).await {
            Ok(AttemptWrite::Done) => {
                pool.store.ended(&receipt.lease);
                pool.recorded.fetch_add(1, Ordering::Relaxed);
                pool.recorded_changed.notify_waiters();
                return;
            }
            Ok(AttemptWrite::LeaseLost) => {
                pool.store.ended(&receipt.lease);
                tracing::debug!("attempt {:?} ended after its lease was lost", receipt.lease);
                return;
            }
            Err(StoreError::Refused(reason)) if matches!(verdict, Verdict::Complete(_)) => {
                let error = format!("the result cannot be stored: {reason}");
                verdict = Verdict::Fail(AttemptFailure { outcome: Outcome::Failed, error, next: Next::Dead });
            }
            Err(error) if error.is_transient() => {
                tracing::warn!("cannot record the outcome of attempt {:?}, retrying: {error}", receipt.lease);
                retry.sleep().await;
            }
            Err(error) => {
                tracing::error!("cannot record the outcome of attempt {:?}: {error}", receipt.lease);
                pool.stop_if_fatal(&error);
                return;
            }
        }
    }
}

async fn write(
    pool: &PoolState,
    receipt: Receipt,
    verdict: Verdict,
    follow_ups: Vec<NewJob>,
) -> Result<AttemptWrite, StoreError> {
    match verdict {
        Verdict::Complete(result) => {
            let adds_jobs = !follow_ups.is_empty();
            let recorded = pool.store.complete(receipt, result, follow_ups).await?;
            if adds_jobs {
                pool.wake.notify_one();
            }
            Ok(recorded)
        }
        Verdict::Fail(failure) => pool.store.fail(receipt, failure).await,
        Verdict::Snooze(delay) => pool.store.snooze(receipt, delay).await,
        Verdict::GiveBack => pool.store.give_back(receipt).await,
    }
}

/// Gives back leases whose guests never started: their jobs are pending again, and no attempt is counted.
pub(super) async fn release(pool: &PoolState, leases: Vec<Lease>) {
    let mut retry = RetryPause(FIRST_PAUSE);
    loop {
        match pool.store.release(leases.clone()).await {
            Ok(()) => break,
            Err(error) if error.is_transient() => {
                tracing::warn!("cannot give back {} jobs, retrying: {error}", leases.len());
                retry.sleep().await;
            }
            Err(error) => {
                tracing::error!("cannot give back {} jobs: {error}", leases.len());
                pool.stop_if_fatal(&error);
                break;
            }
        }
    }
    let mut held = pool.leases();
    leases.iter().for_each(|lease| held.remove(lease));
}

/// The pause before the next retry.
struct RetryPause(Duration);

impl RetryPause {
    async fn sleep(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_PAUSE);
    }
}
