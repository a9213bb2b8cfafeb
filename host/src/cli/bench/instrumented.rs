//! Handlers that measure what happens between pool and sandbox: when the first instruction of a guest ran (the guest logs
//! before it does anything else), and how many guests run at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::workload::Workload;
use crate::queue::{Digest, JobType, NewJob, Payload, PluginReport};
use crate::sandbox::{AttemptHandle, AttemptReport, Call, FollowUps, Grants, Limits};
use crate::worker::{Handler, Handlers};

/// A component that logs one word and returns (source: `tests/guests/wat/first_word.wat`).
const FIRST_WORD: &[u8] = include_bytes!("../../../../tests/guests/first_word.wasm");

/// The job type of timed jobs.
const TYPE: &str = "first-word";

/// The workload whose jobs can be timed.
pub(super) fn timed_workload() -> anyhow::Result<Workload> {
    let payload = Payload::parse("0".to_owned(), 1)?;
    Ok(Workload { job_type: JobType::parse(TYPE)?, wasm: FIRST_WORD.to_vec(), payload })
}

/// A job whose payload is the time of its creation, by the wall clock that all processes share.
pub(super) fn timed_job() -> anyhow::Result<NewJob> {
    let workload = timed_workload()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().to_string();
    let payload = Payload::parse(now, 64)?;
    Ok(Workload { payload, ..workload }.job())
}

/// Handlers that measure the jobs of one type.
pub(super) struct InstrumentedHandlers {
    handlers: Arc<dyn Handlers>,
    job_type: JobType,
    measurements: Arc<Measurements>,
}

/// The measurements.
#[derive(Default)]
struct Measurements {
    /// For each timed job, the time from its creation to its guest's first log line.
    times: Mutex<Vec<Duration>>,
    /// Guests that run now.
    inside: AtomicU64,
    /// The most that ran at once.
    most: AtomicU64,
}

impl InstrumentedHandlers {
    /// Measures the jobs of `workload`.
    pub(super) fn of(workload: &Workload, handlers: Arc<dyn Handlers>) -> Self {
        Self { handlers, job_type: workload.job_type.clone(), measurements: Arc::default() }
    }

    /// How many jobs were timed since the last [`take_times`](Self::take_times).
    pub(super) fn timed(&self) -> usize {
        self.measurements.times().len()
    }

    pub(super) fn take_times(&self) -> Vec<Duration> {
        std::mem::take(&mut self.measurements.times())
    }

    /// The most guests that ran at once.
    pub(super) fn most_at_once(&self) -> u64 {
        self.measurements.most.load(Ordering::Relaxed)
    }
}

impl Measurements {
    fn times(&self) -> MutexGuard<'_, Vec<Duration>> {
        self.times.lock()
    }
}

impl Handlers for InstrumentedHandlers {
    fn serving(&self) -> Vec<String> {
        self.handlers.serving()
    }

    fn current(&self, job_type: &str) -> Option<Arc<dyn Handler>> {
        let handler = self.handlers.current(job_type)?;
        if job_type != self.job_type.as_str() {
            return Some(handler);
        }
        Some(Arc::new(InstrumentedHandler { handler, measurements: self.measurements.clone() }))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.handlers.changes()
    }

    fn report(&self) -> Vec<PluginReport> {
        self.handlers.report()
    }
}

struct InstrumentedHandler {
    handler: Arc<dyn Handler>,
    measurements: Arc<Measurements>,
}

#[async_trait]
impl Handler for InstrumentedHandler {
    async fn run(
        &self,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        handle: Arc<AttemptHandle>,
        follow_ups: Arc<dyn FollowUps>,
    ) -> AttemptReport {
        let inside = self.measurements.inside.fetch_add(1, Ordering::Relaxed) + 1;
        self.measurements.most.fetch_max(inside, Ordering::Relaxed);
        let report = match call.payload.parse().map(Duration::from_nanos) {
            Ok(created) => self.time(created, call, limits, grants, &handle, follow_ups).await,
            Err(_) => self.handler.run(call, limits, grants, handle, follow_ups).await,
        };
        self.measurements.inside.fetch_sub(1, Ordering::Relaxed);
        report
    }

    fn digest(&self) -> Option<Digest> {
        self.handler.digest()
    }
}

impl InstrumentedHandler {
    /// Runs a job that was created at this time. The guest gets its own handle, so that nothing else takes its first line. The
    /// lines are passed on when the guest has ended, which is at once.
    async fn time(
        &self,
        created: Duration,
        call: Call,
        limits: &Limits,
        grants: &Grants,
        handle: &AttemptHandle,
        follow_ups: Arc<dyn FollowUps>,
    ) -> AttemptReport {
        let own = Arc::new(AttemptHandle::default());
        let report = self.handler.run(call, limits, grants, own.clone(), follow_ups).await;
        let lines = own.take_lines();
        if let Some(first) = lines.first() {
            let logged = first.time.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.measurements.times().push(logged.saturating_sub(created));
        }
        lines.into_iter().for_each(|line| handle.push(line));
        report
    }
}
