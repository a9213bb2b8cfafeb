//! The state that the tasks of a pool share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cpu_runtime::CpuRuntime;
use super::events::JobEvents;
use super::machine::dispatch::Event;
use super::machine::leases::Leases;
use super::{Handlers, JobTypes};
use crate::queue::{Claims, Store, StoreError, Timestamp, WorkerName};
use crate::sandbox::AttemptHandle;

/// Shared by all tasks of one pool.
pub(super) struct PoolState {
    pub(super) store: Arc<dyn Store>,
    pub(super) handlers: Arc<dyn Handlers>,
    pub(super) job_types: ArcSwap<JobTypes>,
    leases: Mutex<Leases<Arc<AttemptHandle>>>,
    pub(super) events: Arc<JobEvents>,
    pub(super) attempts: TaskTracker,
    pub(super) cpu_runtime: CpuRuntime,
    /// Attempts whose outcome this pool has recorded.
    pub(super) recorded: AtomicU64,
    /// Notified after each addition to `recorded`.
    pub(super) recorded_changed: Notify,
    /// The first error after which nothing that the pool writes is kept.
    pub(super) fatal: OnceLock<StoreError>,
    /// Cancelled when there is such an error.
    pub(super) queue_lost: CancellationToken,
    /// Cancelled to ask the dispatcher to check whether any work is left.
    pub(super) drain_requested: CancellationToken,
    /// Cancelled when no work is left.
    pub(super) drained: CancellationToken,
    /// The name in the `worker` column. Each start has a new one: a restarted daemon doesn't own its predecessor's jobs.
    pub(super) worker: WorkerName,
    pub(super) started_at: Timestamp,
    /// There may be jobs to claim.
    pub(super) wake: Notify,
    /// The queue was written to, by this process or another.
    pub(super) queue_changed: Notify,
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
            events: Arc::default(),
            attempts: TaskTracker::new(),
            cpu_runtime: CpuRuntime::default(),
            recorded: AtomicU64::new(0),
            recorded_changed: Notify::new(),
            fatal: OnceLock::new(),
            queue_lost: CancellationToken::new(),
            drain_requested: CancellationToken::new(),
            drained: CancellationToken::new(),
            worker: WorkerName::new(worker_name()),
            started_at: Timestamp::now(),
            wake: Notify::new(),
            queue_changed: Notify::new(),
            dispatcher,
        }
    }

    pub(super) fn leases(&self) -> MutexGuard<'_, Leases<Arc<AttemptHandle>>> {
        self.leases.lock()
    }

    /// Ends the pool if `error` means that nothing it writes is kept.
    pub(super) fn stop_if_fatal(&self, error: &StoreError) {
        if error.is_fatal() && self.fatal.set(error.clone()).is_ok() {
            tracing::error!("{error}");
            self.queue_lost.cancel();
        }
    }
}

fn worker_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}-{:08x}", std::process::id(), fastrand::u32(..))
}
