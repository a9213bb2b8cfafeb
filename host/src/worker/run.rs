//! One attempt, from its lease to its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attempt::decide;
use super::machine::dispatch::Event;
use super::machine::leases::Start;
use super::outbox::Outbox;
use super::pool_state::{DispatcherMessage, PoolState};
use super::{Handler, JobTypeOptions, heartbeat, record};
use crate::queue::{Claimed, Lease, Receipt};
use crate::sandbox::{self, Call, Limits, Tap};

/// Runs the handler of a claimed job and records the outcome. A long computation moves to the CPU runtime.
pub(super) async fn attempt(pool: Arc<PoolState>, job: Claimed, handler: Arc<dyn Handler>) {
    let tap = Arc::new(Tap::default());
    let attempt = run_and_record(pool.clone(), job, handler, tap.clone());
    pool.cpu_runtime.run(&tap, attempt).await;
}

async fn run_and_record(pool: Arc<PoolState>, job: Claimed, handler: Arc<dyn Handler>, tap: Arc<Tap>) {
    let mut slot = SlotGuard { pool: &pool, job: &job, started: None };
    let _lease = LeaseGuard { pool: &pool, lease: &job.lease };
    let start = pool.leases().start(&job.lease, &tap, Instant::now());
    match start {
        Start::Go => slot.started = Some(Instant::now()),
        Start::Lost => return,
        Start::TooLate => {
            drop(slot);
            return record::release(&pool, vec![job.lease.clone()]).await;
        }
    }
    pool.store.started(&job.lease);
    let job_types = pool.job_types.load_full();
    let type_options = job_types.of(job.job_type.as_str());
    let outbox = Arc::new(Outbox::new(pool.store.clone(), job_types.clone(), job.lease.clone()));
    let (outcome, receipt) = run(&job, &*handler, type_options, tap, outbox.clone()).await;
    drop(slot);
    let verdict = decide(outcome, job.attempt, job.max_attempts, type_options, fastrand::f64());
    record::record(&pool, receipt, verdict, outbox.take()).await;
}

async fn run(
    job: &Claimed,
    handler: &dyn Handler,
    type_options: &JobTypeOptions,
    tap: Arc<Tap>,
    outbox: Arc<Outbox>,
) -> (sandbox::GuestOutcome, Receipt) {
    let mut receipt = Receipt::of(job, Duration::ZERO);
    let payload = match &job.payload {
        Ok(payload) => payload.clone(),
        Err(error) => {
            let message = format!("the payload is not UTF-8 text, so no handler can read it: {error}");
            return (sandbox::GuestOutcome::Failed { message, after: None }, receipt);
        }
    };
    let call = Call {
        id: job.id.to_string(),
        job_type: job.job_type.to_string(),
        payload,
        attempt: job.attempt,
        max_attempts: job.max_attempts.unwrap_or(type_options.policy.max_attempts),
    };
    let limits = limits(job, type_options);
    let report = handler.run(call, &limits, &type_options.grants, tap.clone(), outbox).await;
    receipt.duration = report.duration;
    receipt.fuel = report.fuel;
    receipt.peak_memory = Some(report.peak_memory).filter(|peak| *peak > 0);
    receipt.digest = handler.digest();
    receipt.lines = heartbeat::lines(&tap);
    (report.outcome, receipt)
}

/// The limits of the type. The job's own timeout replaces the type's, up to `max_timeout`.
fn limits(job: &Claimed, type_options: &JobTypeOptions) -> Limits {
    let timeout = job.timeout.map_or(type_options.limits.timeout, |timeout| timeout.min(type_options.max_timeout));
    Limits { timeout, ..type_options.limits.clone() }
}

/// The slot of an attempt. Dropping it frees the slot, even after a panic.
struct SlotGuard<'a> {
    pool: &'a PoolState,
    job: &'a Claimed,
    /// When the guest started.
    started: Option<Instant>,
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        let job_type = self.job.job_type.clone();
        let event = match self.started {
            Some(started) => Event::Ended { job_type, took: started.elapsed() },
            None => Event::NotStarted(job_type),
        };
        // Fails only when the dispatcher has ended.
        _ = self.pool.dispatcher.send(DispatcherMessage::Event(event));
    }
}

/// A lease that is renewed until this is dropped. After a panic it expires, and the attempt counts as lost.
struct LeaseGuard<'a> {
    pool: &'a PoolState,
    lease: &'a Lease,
}

impl Drop for LeaseGuard<'_> {
    fn drop(&mut self) {
        self.pool.leases().remove(self.lease);
    }
}
