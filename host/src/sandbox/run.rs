//! One attempt, from a free slot to its report.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Store, StoreContextMut, UpdateDeadline, WasmBacktrace};

use super::bindings::jobq::handler::types::{DelayedRetry, JobError};
use super::call::Call;
use super::end::{Cut, Ended};
use super::engine::Sandbox;
use super::follow_ups::{self, FollowUps, Gate};
use super::grants::Grants;
use super::guest_outcome::{GuestOutcome, Report};
use super::limits::{Limits, Metering};
use super::output::Output;
use super::plugin::{Answer, Plugin};
use super::secrets::Secrets;
use super::state::Host;
use super::tap::Tap;
use super::trace;
use super::wasi;

/// How much later than its deadline a guest is left alone if no tick has reached it: it waits inside the host then.
const GRACE: Duration = Duration::from_millis(50);

/// A time limit beyond this is none.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What a guest may have copied into the host by one call besides its result: follow-ups are the largest.
const COPY: usize = follow_ups::MAX_BYTES + (64 << 10);

impl Sandbox {
    /// Runs one attempt on a fresh instance and tells how it ended. Waits for a free slot first; the clock starts after that.
    ///
    /// The guest runs inside this future and is gone when it is dropped.
    pub async fn run(
        &self,
        plugin: &Plugin,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        tap: Arc<Tap>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> Report {
        let Some(_slot) = slot(plugin, &tap).await else { return Report::unstarted(GuestOutcome::Stopped) };
        let _ticking = self.ticker.wake();
        let start = Instant::now();
        let deadline = start + limits.timeout.min(FOREVER);
        let output = Arc::new(Output::new(plugin.kind(), limits, grants.secrets.clone(), tap));
        let gate = Gate::new(call.job_type.clone(), grants, follow_ups);
        let (wasi, job) = wasi::of(plugin.kind(), call, grants, &output);
        let wasi = match within(deadline, output.tap(), pin!(wasi::with_dirs(wasi, &grants.dirs))).await {
            Ok(Ok(wasi)) => wasi,
            Ok(Err(message)) => return Report::unstarted(GuestOutcome::Failed { message, after: None }),
            Err(cut) => return Report::unstarted(cut.while_opening_dirs()),
        };
        let host = Host::new(wasi, self.handles, limits, grants, Arc::clone(&output), gate, deadline);
        let mut store = store(plugin, host, limits);
        let end = {
            let run = pin!(plugin.enter(&mut store, job.as_ref()));
            within(deadline + GRACE, output.tap(), run).await.unwrap_or_else(|cut| Err(cut.into()))
        };
        let end = end.map(|answer| redacted(answer, &grants.secrets));
        let duration = start.elapsed();
        let frames = match &end {
            Ok(_) => String::new(),
            Err(error) => trace::frames(error, plugin.debug_info(), output.tap()).await,
        };
        report(plugin, limits, duration, &store, &output, end, &frames)
    }
}

/// Waits for a slot, or for somebody to lose patience.
async fn slot<'a>(plugin: &'a Plugin, tap: &Tap) -> Option<tokio::sync::SemaphorePermit<'a>> {
    tokio::select! {
        biased;
        () = tap.wait_for_stop() => None,
        slot = plugin.slots().acquire() => slot.ok(),
    }
}

/// Waits for `work`, which ends by itself, by the clock, or because it is told to. A large future is better pinned than moved here.
async fn within<T>(end: Instant, tap: &Tap, work: impl Future<Output = T>) -> Result<T, Cut> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = tap.wait_for_stop() => Err(Cut::Stopped),
        () = tokio::time::sleep_until(end.into()) => Err(Cut::Deadline),
    }
}

fn store(plugin: &Plugin, host: Host, limits: &Limits) -> Store<Host> {
    let mut store = Store::new(plugin.engine(), host);
    store.limiter(|host| &mut host.memory);
    store.set_hostcall_fuel(COPY.max(limits.max_result.saturating_add(64 << 10)));
    if plugin.metering() == Metering::Fuel {
        // The engine counts fuel, so this cannot fail; if it did, the guest would have none and say so.
        _ = store.set_fuel(limits.fuel.unwrap_or(u64::MAX));
    }
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(on_tick);
    store
}

/// Called at every tick a guest runs through: ends it, or lets the others have a turn.
fn on_tick(store: StoreContextMut<'_, Host>) -> wasmtime::Result<UpdateDeadline> {
    let host = store.data();
    host.output.tap().tick();
    if host.output.tap().is_stopped() {
        return Err(Cut::Stopped.into());
    }
    if Instant::now() >= host.deadline {
        return Err(Cut::Deadline.into());
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
    end: wasmtime::Result<Answer>,
    frames: &str,
) -> Report {
    let fuel = if was_cut_while_computing(&end) { None } else { burnt(store, limits) };
    let memory = &store.data().memory;
    let outcome = Ended { kind: plugin.kind(), limits, memory, output, frames }.judge(end);
    output.finish();
    let host = store.data();
    let failed = !matches!(outcome, GuestOutcome::Completed(_) | GuestOutcome::Snoozed(_) | GuestOutcome::Stopped);
    if matches!(outcome, GuestOutcome::TimedOut(_)) {
        host.guard.tell_open();
    }
    host.denials.tell(host.gate.job_type(), failed, output);
    Report { outcome, duration, fuel, peak_memory: memory.peak() }
}

/// What a guest answered, without its secrets.
fn redacted(answer: Answer, secrets: &Secrets) -> Answer {
    let Answer::Handler(answer) = answer else { return answer };
    Answer::Handler(answer.map(|result| secrets.redact_result(result)).map_err(|error| match error {
        JobError::Retry(message) => JobError::Retry(secrets.redact(message)),
        JobError::RetryAfter(DelayedRetry { message, after_ms }) => {
            JobError::RetryAfter(DelayedRetry { message: secrets.redact(message), after_ms })
        }
        JobError::Fatal(message) => JobError::Fatal(secrets.redact(message)),
        JobError::Snooze(ms) => JobError::Snooze(ms),
    }))
}

fn burnt(store: &Store<Host>, limits: &Limits) -> Option<u64> {
    Some(limits.fuel?.saturating_sub(store.get_fuel().ok()?))
}

/// A guest that is interrupted in the middle of a loop has its fuel in a register, where nobody can read it.
fn was_cut_while_computing(end: &wasmtime::Result<Answer>) -> bool {
    end.as_ref().is_err_and(|error| error.is::<Cut>() && error.is::<WasmBacktrace>())
}

impl Report {
    fn unstarted(outcome: GuestOutcome) -> Self {
        Self { outcome, duration: Duration::ZERO, fuel: None, peak_memory: 0 }
    }
}
