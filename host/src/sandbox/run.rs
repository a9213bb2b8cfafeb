//! One attempt, from a free slot to its report.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Store, StoreContextMut, UpdateDeadline};

use super::attempt_handle::AttemptHandle;
use super::call::Call;
use super::engine::Sandbox;
use super::follow_ups::{self, FollowUpGate, FollowUps};
use super::grants::Grants;
use super::guest_outcome::{AttemptReport, EndedAttempt, GuestOutcome, GuestReturn, Interrupt};
use super::limits::{Limits, Metering};
use super::output::Output;
use super::plugin::Plugin;
use super::state::Host;
use super::trace;
use super::wasi;

/// How long after its deadline a guest is stopped if no tick has reached it because it waits inside the host.
const GRACE: Duration = Duration::from_millis(50);

/// A longer time limit is treated as this one.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Bytes that one call of a guest may copy into the host, apart from its result. Follow-ups are the largest.
const MAX_COPY: usize = follow_ups::MAX_BYTES + (64 << 10);

impl Sandbox {
    /// Runs one attempt on a fresh instance and reports how it ended. Waits for a free slot first; the clock starts after that.
    ///
    /// The guest runs inside this future and is gone when the future is dropped.
    pub async fn run(
        &self,
        plugin: &Plugin,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        handle: Arc<AttemptHandle>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> AttemptReport {
        let Some(_slot) = slot(plugin, &handle).await else {
            return AttemptReport::not_started(GuestOutcome::Stopped);
        };
        let _ticking = self.ticker.wake();
        let start = Instant::now();
        let deadline = start + limits.timeout.min(LONGEST_TIMEOUT);
        let output = Arc::new(Output::new(plugin.kind(), limits, grants.secrets.clone(), handle));
        let gate = FollowUpGate::new(call.job_type.clone(), grants, follow_ups);
        let (wasi, job) = wasi::builder(plugin.kind(), call, grants, &output);
        let wasi = match until(deadline, output.handle(), pin!(wasi::open_dirs(wasi, &grants.dirs))).await {
            Ok(Ok(wasi)) => wasi,
            Ok(Err(outcome)) => return AttemptReport::not_started(outcome),
            Err(interrupt) => return AttemptReport::not_started(interrupt.while_opening_dirs()),
        };
        let host = Host::new(wasi, self.handles, limits, grants, Arc::clone(&output), gate, deadline);
        let mut store = store(plugin, host, limits);
        let result = {
            let run = pin!(plugin.enter(&mut store, job.as_ref()));
            until(deadline + GRACE, output.handle(), run).await.unwrap_or_else(|interrupt| Err(interrupt.into()))
        };
        let result = result.map(|returned| returned.redacted(&grants.secrets));
        let duration = start.elapsed();
        let frames = match &result {
            Ok(_) => String::new(),
            Err(error) => trace::frames(error, plugin.debug_info(), output.handle()).await,
        };
        report(plugin, limits, duration, &store, &output, result, &frames)
    }
}

/// Waits for a free slot; `None` if the attempt is stopped first.
async fn slot<'a>(plugin: &'a Plugin, handle: &AttemptHandle) -> Option<tokio::sync::SemaphorePermit<'a>> {
    tokio::select! {
        biased;
        () = handle.wait_for_stop() => None,
        slot = plugin.slots().acquire() => slot.ok(),
    }
}

/// Runs `work` until it ends, the deadline passes or the attempt is stopped. Pin a large future instead of moving it here.
async fn until<T>(deadline: Instant, handle: &AttemptHandle, work: impl Future<Output = T>) -> Result<T, Interrupt> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = handle.wait_for_stop() => Err(Interrupt::Stopped),
        () = tokio::time::sleep_until(deadline.into()) => Err(Interrupt::Deadline),
    }
}

fn store(plugin: &Plugin, host: Host, limits: &Limits) -> Store<Host> {
    let mut store = Store::new(plugin.engine(), host);
    store.limiter(|host| &mut host.memory);
    store.set_hostcall_fuel(MAX_COPY.max(limits.max_result.saturating_add(64 << 10)));
    if plugin.metering() == Metering::Fuel {
        // Only fails on an engine that counts no fuel; the guest would then end at once as out of fuel.
        _ = store.set_fuel(limits.fuel.unwrap_or(u64::MAX));
    }
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(on_tick);
    store
}

/// Called at every tick that a guest computes through: interrupts it, or yields to other tasks.
fn on_tick(store: StoreContextMut<'_, Host>) -> wasmtime::Result<UpdateDeadline> {
    let host = store.data();
    host.output.handle().tick();
    if host.output.handle().is_stopped() {
        return Err(Interrupt::Stopped.into());
    }
    if Instant::now() >= host.deadline {
        return Err(Interrupt::Deadline.into());
    }
    // The plain `Yield` wakes itself at once and starves the timers and sockets of the runtime.
    Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
}

fn report(
    plugin: &Plugin,
    limits: &Limits,
    duration: Duration,
    store: &Store<Host>,
    output: &Output,
    result: wasmtime::Result<GuestReturn>,
    frames: &str,
) -> AttemptReport {
    let is_fuel_known = !result.as_ref().is_err_and(Interrupt::hit_computation);
    let fuel = if is_fuel_known { fuel_used(store, limits) } else { None };
    let host = store.data();
    let outcome = EndedAttempt { kind: plugin.kind(), limits, memory: &host.memory, output, frames }.outcome(result);
    output.finish();
    let failed = !matches!(outcome, GuestOutcome::Completed(_) | GuestOutcome::Snoozed(_) | GuestOutcome::Stopped);
    if matches!(outcome, GuestOutcome::TimedOut(_)) {
        host.http.log_open_requests();
    }
    host.denials.log(host.gate.job_type(), failed, output);
    AttemptReport { outcome, duration, fuel, peak_memory: host.memory.peak() }
}

fn fuel_used(store: &Store<Host>, limits: &Limits) -> Option<u64> {
    Some(limits.fuel?.saturating_sub(store.get_fuel().ok()?))
}

impl AttemptReport {
    fn not_started(outcome: GuestOutcome) -> Self {
        Self { outcome, duration: Duration::ZERO, fuel: None, peak_memory: 0 }
    }
}
