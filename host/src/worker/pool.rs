//! The pool as its owner sees it: started, woken, reconfigured, stopped. What it does all day is the `dispatcher`'s.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::dispatcher::{Dispatcher, Report};
use super::events::{self, JobEvents};
use super::lanes::Lanes;
use super::machine::leases::Leases;
use super::machine::shutdown::{Action, Event, SIGN_OFF, Shutdown};
use super::{Handlers, Rules, WorkerOptions, cleaner, heartbeat, presence, reaper};
use crate::queue::{ChangeCursor, Store, StoreError, Timestamp, WorkerName};
use crate::sandbox::Tap;

/// The pause after a look for changes that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a pool is made of.
pub struct Setup {
    /// The queue.
    pub store: Arc<dyn Store>,
    /// What runs the jobs.
    pub handlers: Arc<dyn Handlers>,
    /// How to go about it.
    pub options: WorkerOptions,
}

/// A running pool: claims due jobs and runs their handlers until it is stopped.
pub struct Pool {
    shared: Arc<Shared>,
    options: watch::Sender<Arc<WorkerOptions>>,
    stopping: CancellationToken,
    dispatcher: JoinHandle<()>,
    chores: TaskTracker,
    chores_over: CancellationToken,
}

/// Wakes a [`Pool`].
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

impl Waker {
    /// Says that there may be work.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }
}

/// What the pool's tasks share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) handlers: Arc<dyn Handlers>,
    pub(super) rules: ArcSwap<Rules>,
    leases: Mutex<Leases<Arc<Tap>>>,
    pub(super) events: JobEvents,
    pub(super) attempts: TaskTracker,
    pub(super) lanes: Lanes,
    pub(super) recorded: AtomicU64,
    /// Tells of every addition to `recorded`.
    pub(super) news: Notify,
    /// The queue was deleted or replaced under this pool.
    pub(super) gone: CancellationToken,
    /// Cancelled when the dispatcher shall find out whether anything is left to do.
    pub(super) drain_requested: CancellationToken,
    /// Cancelled when nothing is left.
    pub(super) drained: CancellationToken,
    /// This daemon's name in the rows; another one at each start, so that a restart is not taken for its predecessor.
    pub(super) worker: WorkerName,
    pub(super) started_at: Timestamp,
    /// Says that there may be work to claim.
    pub(super) wake: Notify,
    /// Says that the wall clock was set ahead.
    pub(super) jumped_ahead: Notify,
    pub(super) reports: mpsc::UnboundedSender<Report>,
}

impl Shared {
    pub(super) fn leases(&self) -> MutexGuard<'_, Leases<Arc<Tap>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the pool where `error` means that what it writes is lost.
    pub(super) fn note(&self, error: &StoreError) {
        if error.is_fatal() && !self.gone.is_cancelled() {
            tracing::error!("{error}");
            self.gone.cancel();
        }
    }
}

impl Pool {
    /// Starts claiming. Must be called on a tokio runtime.
    pub fn start(setup: Setup) -> Self {
        let Setup { store, handlers, options } = setup;
        let (reports, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            store,
            handlers,
            rules: ArcSwap::from_pointee(options.rules.clone()),
            leases: Mutex::default(),
            events: JobEvents::default(),
            attempts: TaskTracker::new(),
            lanes: Lanes::default(),
            recorded: AtomicU64::new(0),
            news: Notify::new(),
            gone: CancellationToken::new(),
            drain_requested: CancellationToken::new(),
            drained: CancellationToken::new(),
            worker: WorkerName::new(worker_name()),
            started_at: Timestamp::now(),
            wake: Notify::new(),
            jumped_ahead: Notify::new(),
            reports,
        });
        let (options, current) = watch::channel(Arc::new(options));
        let (stopping, chores_over, chores) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        let chore = |task: BoxedChore| _ = chores.spawn(chores_over.clone().run_until_cancelled_owned(task));
        chore(Box::pin(heartbeat::beat(shared.clone(), current.clone())));
        chore(Box::pin(cleaner::clean(shared.clone(), current.clone())));
        chore(Box::pin(presence::announce(shared.clone(), current.clone())));
        chore(Box::pin(events::report_suppressed(shared.clone())));
        chore(Box::pin(look_for_changes(shared.clone(), current.clone())));
        let dispatcher = Dispatcher::new(shared.clone(), current);
        let dispatcher = tokio::spawn(dispatcher.run(inbox, stopping.clone()));
        Self { shared, options, stopping, dispatcher, chores, chores_over }
    }

    /// This daemon's name, as it stands in the `worker` column.
    pub fn worker(&self) -> &str {
        self.shared.worker.as_str()
    }

    /// What tells the pool that a job has been enqueued in this process, so that it starts at once.
    pub fn waker(&self) -> Waker {
        Waker(self.shared.clone())
    }

    /// Returns when somebody has deleted or replaced the queue: nothing that this pool does is seen any more.
    pub async fn gone(&self) {
        self.shared.gone.cancelled().await;
    }

    /// Attempts whose end this pool has put on record since it started.
    pub fn recorded(&self) -> u64 {
        self.shared.recorded.load(Ordering::Relaxed)
    }

    /// Returns as soon as this pool has put the ends of `count` attempts on record since it started.
    pub async fn await_recorded(&self, count: u64) {
        loop {
            let news = self.shared.news.notified();
            if self.recorded() >= count {
                return;
            }
            news.await;
        }
    }

    /// Waits until the pool runs nothing and no job of a type that it serves is due. Follow-ups and retries that are due at
    /// once are run first. Jobs due later, jobs of other types and jobs that other daemons run are not waited for.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        async move {
            // Jobs of a daemon that died may be due.
            if reaper::reap(&shared, None).await.is_err() {
                tracing::warn!("jobs of daemons that died may be left");
            }
            shared.drain_requested.cancel();
            shared.drained.cancelled().await;
        }
    }

    /// Takes new settings; what runs goes on under the old ones.
    pub fn reconfigure(&self, options: WorkerOptions) {
        self.shared.rules.store(Arc::new(options.rules.clone()));
        self.options.send_replace(Arc::new(options));
    }

    /// Stops: claims nothing more, gives back what has not started, lets running attempts end within the grace of the
    /// settings, stops those that have not by then or when `at_once` is cancelled, and gives them back too.
    ///
    /// Returns within the grace plus one second, whatever the guests do.
    pub async fn stop(self, at_once: CancellationToken) {
        let mut machine = Shutdown::begin(self.options.borrow().shutdown_grace, Instant::now());
        self.stopping.cancel();
        let shared = &self.shared;
        let _reports = AbortOnDropHandle::new(tokio::spawn(events::report_waiting(shared.clone())));
        let all_ended = async {
            _ = self.dispatcher.await;
            shared.attempts.close();
            shared.attempts.wait().await;
        };
        tokio::pin!(all_ended);
        let mut hurried = false;
        while let Some(wake_at) = machine.wake_at() {
            let event = tokio::select! {
                biased;
                () = &mut all_ended => Event::AllEnded,
                () = at_once.cancelled(), if !hurried => {
                    hurried = true;
                    Event::Hurry
                }
                () = tokio::time::sleep_until(wake_at.into()) => Event::Tick,
            };
            if machine.on(event, Instant::now()) == Action::StopGuests {
                shared.events.stopping_guests();
                shared.leases().close().into_iter().for_each(|tap| tap.stop());
            }
        }
        self.chores_over.cancel();
        self.chores.close();
        self.chores.wait().await;
        shared.events.log_suppressed();
        match tokio::time::timeout(SIGN_OFF, shared.store.retire(&shared.worker)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("cannot sign off: {error}"),
            Err(_) => tracing::warn!("cannot sign off in time"),
        }
    }
}

type BoxedChore = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn worker_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}-{:08x}", std::process::id(), fastrand::u32(..))
}

/// Wakes the pool when somebody has written to the queue.
async fn look_for_changes(shared: Arc<Shared>, mut options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut seen = ChangeCursor::default();
    let mut trouble: Option<String> = None;
    loop {
        let (pace, net) = {
            let options = options.borrow_and_update();
            (options.poll_interval, options.max_poll_interval)
        };
        let change = tokio::select! {
            change = shared.store.change(seen, pace, net) => change,
            Ok(()) = options.changed() => continue,
        };
        match change {
            Ok(cursor) => {
                (seen, trouble) = (cursor, None);
                shared.wake.notify_one();
            }
            Err(error) => {
                let text = error.to_string();
                if trouble.as_ref() != Some(&text) {
                    tracing::warn!("cannot look for new jobs, trying again: {text}");
                }
                trouble = Some(text);
                shared.note(&error);
                tokio::time::sleep(LOOK_AGAIN.max(pace)).await;
            }
        }
    }
}
