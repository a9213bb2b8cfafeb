//! One attempt, from its lease to its record.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::attempt::{Verdict, decide};
use super::dispatcher::Report;
use super::follow_up::Outbox;
use super::machine::dispatch::Event;
use super::machine::leases::Start;
use super::pool::Shared;
use super::{Handler, Rule, heartbeat, release};
use crate::queue::{AttemptFailure, AttemptWrite, Claimed, Lease, NewJob, Next, Outcome, Receipt, StoreError};
use crate::sandbox::{self, Call, Limits, Tap};

/// The longest pause between two tries to write down how an attempt ended.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs the handler of a leased job and records how it ended, where there is room for one of its length.
pub(super) async fn attempt(shared: Arc<Shared>, job: Claimed, handler: Arc<dyn Handler>) {
    let tap = Arc::new(Tap::default());
    let attempt = run_and_record(shared.clone(), job, handler, tap.clone());
    shared.lanes.run(&tap, attempt).await;
}

async fn run_and_record(shared: Arc<Shared>, job: Claimed, handler: Arc<dyn Handler>, tap: Arc<Tap>) {
    let mut slot = Slot { shared: &shared, job: &job, started: None };
    let _lease = Held { shared: &shared, lease: &job.lease };
    let start = shared.leases().start(&job.lease, &tap, Instant::now());
    match start {
        Start::Go => slot.started = Some(Instant::now()),
        Start::Lost => return,
        Start::TooLate => {
            drop(slot);
            return release::release(&shared, vec![job.lease.clone()]).await;
        }
    }
    shared.store.started(&job.lease);
    let rules = shared.rules.load_full();
    let rule = rules.of(job.job_type.as_str());
    let outbox = Arc::new(Outbox::new(shared.store.clone(), rules.clone(), job.lease.clone()));
    let (end, receipt) = run(&job, &*handler, rule, tap, outbox.clone()).await;
    drop(slot);
    let verdict = decide(end, job.attempt, job.max_attempts, rule, fastrand::f64());
    record(&shared, receipt, verdict, outbox.take()).await;
}

async fn run(
    job: &Claimed,
    handler: &dyn Handler,
    rule: &Rule,
    tap: Arc<Tap>,
    outbox: Arc<Outbox>,
) -> (sandbox::GuestOutcome, Receipt) {
    let mut receipt = Receipt::of(job, Duration::ZERO);
    let payload = match &job.payload {
        Ok(payload) => payload.clone(),
        Err(error) => {
            let message = format!("the payload is not UTF-8 text and no handler can be given it: {error}");
            return (sandbox::GuestOutcome::Failed { message, after: None }, receipt);
        }
    };
    let call = Call {
        id: job.id.to_string(),
        job_type: job.job_type.to_string(),
        payload,
        attempt: job.attempt,
        max_attempts: job.max_attempts.unwrap_or(rule.policy.max_attempts),
    };
    let limits = limits(job, rule);
    let report = handler.run(call, &limits, &rule.grants, tap.clone(), outbox).await;
    receipt.duration = report.duration;
    receipt.fuel = report.fuel;
    receipt.peak_memory = Some(report.peak_memory).filter(|peak| *peak > 0);
    receipt.digest = handler.digest();
    receipt.lines = heartbeat::lines(&tap);
    (report.outcome, receipt)
}

/// The limits of the type, with the job's own timeout as far as the type allows it.
fn limits(job: &Claimed, rule: &Rule) -> Limits {
    let timeout = job.timeout.map_or(rule.limits.timeout, |asked| asked.min(rule.max_timeout));
    Limits { timeout, ..rule.limits.clone() }
}

/// Writes down how an attempt ended; as long as the disk or a lock stands in the way, again and again.
async fn record(shared: &Shared, receipt: Receipt, mut verdict: Verdict, follow_ups: Vec<NewJob>) {
    let mut pause = Duration::from_millis(50);
    loop {
        match write(shared, receipt.clone(), verdict.clone(), follow_ups.clone()).await {
            Ok(AttemptWrite::Done) => {
                shared.store.ended(&receipt.lease);
                shared.recorded.fetch_add(1, Ordering::Relaxed);
                shared.news.notify_waiters();
                return;
            }
            Ok(AttemptWrite::LeaseLost) => {
                shared.store.ended(&receipt.lease);
                tracing::debug!("attempt {:?} ended too late: its lease no longer holds", receipt.lease);
                return;
            }
            Err(StoreError::Refused(reason)) if matches!(verdict, Verdict::Complete(_)) => {
                let error = format!("the result cannot be stored: {reason}");
                verdict = Verdict::Fail(AttemptFailure { outcome: Outcome::Failed, error, next: Next::Dead });
            }
            Err(error) if error.is_transient() => {
                tracing::warn!("cannot record how attempt {:?} ended, trying again: {error}", receipt.lease);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                tracing::error!("cannot record how attempt {:?} ended: {error}", receipt.lease);
                shared.note(&error);
                return;
            }
        }
    }
}

/// The one step from a verdict to the store.
async fn write(
    shared: &Shared,
    receipt: Receipt,
    verdict: Verdict,
    follow_ups: Vec<NewJob>,
) -> Result<AttemptWrite, StoreError> {
    match verdict {
        Verdict::Complete(result) => {
            let work = !follow_ups.is_empty();
            let recorded = shared.store.complete(receipt, result, follow_ups).await?;
            if work {
                shared.wake.notify_one();
            }
            Ok(recorded)
        }
        Verdict::Fail(failure) => shared.store.fail(receipt, failure).await,
        Verdict::Snooze(delay) => shared.store.snooze(receipt, delay).await,
        Verdict::GiveBack => shared.store.give_back(receipt).await,
    }
}

/// The slot of an attempt: free again when this is dropped, even by a panic.
struct Slot<'a> {
    shared: &'a Shared,
    job: &'a Claimed,
    /// When its guest started.
    started: Option<Instant>,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let job_type = self.job.job_type.clone();
        let event = match self.started {
            Some(started) => Event::Ended { job_type, took: started.elapsed() },
            None => Event::NotStarted(job_type),
        };
        _ = self.shared.reports.send(Report::Event(event));
    }
}

/// A lease that is kept alive until this is dropped, even by a panic; after one it expires and the attempt counts as lost.
struct Held<'a> {
    shared: &'a Shared,
    lease: &'a Lease,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.leases().remove(self.lease);
    }
}
