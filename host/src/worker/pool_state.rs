//! The state that the tasks of a pool share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cpu_runtime::CpuRuntime;
use super::machine::dispatch::Event;
use super::machine::leases::Leases;
use super::{Handlers, JobTypes};
use crate::queue::{Claims, Store, StoreError, Timestamp, WorkerName};
use crate::sandbox::Tap;

/// Shared by all tasks of one pool.
pub(super) struct PoolState {
    pub(super) store: Arc<dyn Store>,
    pub(super) handlers: Arc<dyn Handlers>,
    pub(super) job_types: ArcSwap<JobTypes>,
    leases: Mutex<Leases<Arc<Tap>>>,
    pub(super) attempts: TaskTracker,
    pub(super) cpu_runtime: CpuRuntime,
    /// Attempts whose outcome this pool has recorded.
    pub(super) recorded: AtomicU64,
    /// Notified after each addition to `recorded`.
    pub(super) recorded_changed: Notify,
    /// Cancelled when the database was deleted, replaced or damaged while the pool ran.
    pub(super) queue_lost: CancellationToken,
    /// The name in the `worker` column. Each start has a new one: a restarted daemon doesn't own its predecessor's jobs.
    pub(super) worker: WorkerName,
    pub(super) started_at: Timestamp,
    /// There may be jobs to claim.
    pub(super) wake: Notify,
    /// The wall clock was set ahead.
    pub(super) jumped_ahead: Notify,
    pub(super) dispatcher: mpsc::UnboundedSender<DispatcherMessage>,
}

/// What other tasks tell the dispatcher.
pub(super) enum DispatcherMessage {
    /// An event for its state machine.
    Event(Event),
    /// The answer to a claim. Its leases hold at least until their length after `asked`.
    Claimed { number: u64, asked: Instant, answer: Result<Claims, StoreError> },
}

impl PoolState {
    pub(super) fn new(
        store: Arc<dyn Store>,
        handlers: Arc<dyn Handlers>,
        job_types: JobTypes,
        dispatcher: mpsc::UnboundedSender<DispatcherMessage>,
    ) -> Self {
        Self {
            store,
            handlers,
            job_types: ArcSwap::from_pointee(job_types),
            leases: Mutex::default(),
            attempts: TaskTracker::new(),
            cpu_runtime: CpuRuntime::default(),
            recorded: AtomicU64::new(0),
            recorded_changed: Notify::new(),
            queue_lost: CancellationToken::new(),
            worker: WorkerName::new(worker_name()),
            started_at: Timestamp::now(),
            wake: Notify::new(),
            jumped_ahead: Notify::new(),
            dispatcher,
        }
    }

    pub(super) fn leases(&self) -> MutexGuard<'_, Leases<Arc<Tap>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the pool if `error` means that nothing it writes is kept.
    pub(super) fn stop_if_fatal(&self, error: &StoreError) {
        if error.is_fatal() && !self.queue_lost.is_cancelled() {
            tracing::error!("{error}");
            self.queue_lost.cancel();
        }
    }
}

fn worker_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}-{:08x}", std::process::id(), fastrand::u32(..))
}
