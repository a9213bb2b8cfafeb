//! A pool as its owner sees it: started, woken, reconfigured and stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dispatcher::Dispatcher;
use super::machine::shutdown::{Action, Event, SIGN_OFF, Shutdown};
use super::pool_state::PoolState;
use super::{Handlers, WorkerOptions, cleaner, daemon_status, heartbeat};
use crate::queue::{ChangeCursor, Store};

/// The pause after the change watcher failed.
const WATCH_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What [`Pool::start`] needs.
pub struct Setup {
    /// The queue.
    pub store: Arc<dyn Store>,
    /// The code that handles the jobs.
    pub handlers: Arc<dyn Handlers>,
    /// Concurrency, polling, leases, and the options of each job type.
    pub options: WorkerOptions,
}

/// A running pool: claims due jobs and runs their handlers until [`stop`](Self::stop).
pub struct Pool {
    state: Arc<PoolState>,
    options: watch::Sender<Arc<WorkerOptions>>,
    stopping: CancellationToken,
    dispatcher: JoinHandle<()>,
    background: TaskTracker,
    background_stop: CancellationToken,
}

/// Wakes a [`Pool`] after an enqueue in the same process.
#[derive(Clone)]
pub struct Waker(Arc<PoolState>);

impl Waker {
    /// Makes the pool look for due jobs now.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }
}

impl Pool {
    /// Starts claiming. Must be called on a tokio runtime.
    pub fn start(setup: Setup) -> Self {
        let Setup { store, handlers, options } = setup;
        let (dispatcher, inbox) = mpsc::unbounded_channel();
        let state = Arc::new(PoolState::new(store, handlers, options.job_types.clone(), dispatcher));
        let (options, current) = watch::channel(Arc::new(options));
        let (stopping, background_stop, background) =
            (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        let spawn = |task: BoxedTask| _ = background.spawn(background_stop.clone().run_until_cancelled_owned(task));
        spawn(Box::pin(heartbeat::beat(state.clone(), current.clone())));
        spawn(Box::pin(cleaner::clean(state.clone(), current.clone())));
        spawn(Box::pin(daemon_status::publish(state.clone(), current.clone())));
        spawn(Box::pin(watch_for_changes(state.clone(), current.clone())));
        let dispatcher = Dispatcher::new(state.clone(), current);
        let dispatcher = tokio::spawn(dispatcher.run(inbox, stopping.clone()));
        Self { state, options, stopping, dispatcher, background, background_stop }
    }

    /// The name of this daemon in the `worker` column.
    pub fn worker(&self) -> &str {
        self.state.worker.as_str()
    }

    /// A handle that wakes the pool after an enqueue in this process, so that the job starts at once.
    pub fn waker(&self) -> Waker {
        Waker(self.state.clone())
    }

    /// Waits until the database was deleted, replaced or damaged: nothing that this pool writes is kept any more.
    pub async fn gone(&self) {
        self.state.queue_lost.cancelled().await;
    }

    /// Attempts whose outcome this pool has recorded since it started.
    pub fn recorded(&self) -> u64 {
        self.state.recorded.load(Ordering::Relaxed)
    }

    /// Waits until this pool has recorded the outcomes of `count` attempts since it started.
    pub async fn await_recorded(&self, count: u64) {
        loop {
            let notified = self.state.recorded_changed.notified();
            if self.recorded() >= count {
                return;
            }
            notified.await;
        }
    }

    /// Applies new settings. Running attempts keep the old ones.
    pub fn reconfigure(&self, options: WorkerOptions) {
        self.state.job_types.store(Arc::new(options.job_types.clone()));
        self.options.send_replace(Arc::new(options));
    }

    /// Stops claiming, gives back jobs that have not started, and waits for running attempts. Those that have not ended
    /// after `shutdown_grace`, or when `at_once` is cancelled, are stopped and their jobs given back.
    ///
    /// Returns within the grace plus one second, whatever the guests do.
    pub async fn stop(self, at_once: CancellationToken) {
        let mut machine = Shutdown::begin(self.options.borrow().shutdown_grace, Instant::now());
        self.stopping.cancel();
        let state = &self.state;
        let all_ended = async {
            _ = self.dispatcher.await;
            state.attempts.close();
            state.attempts.wait().await;
        };
        tokio::pin!(all_ended);
        let mut is_hurried = false;
        while let Some(wake_at) = machine.wake_at() {
            let event = tokio::select! {
                biased;
                () = &mut all_ended => Event::AllEnded,
                () = at_once.cancelled(), if !is_hurried => {
                    is_hurried = true;
                    Event::Hurry
                }
                () = tokio::time::sleep_until(wake_at.into()) => Event::Tick,
            };
            if machine.on(event, Instant::now()) == Action::StopGuests {
                state.leases().close().into_iter().for_each(|tap| tap.stop());
            }
        }
        self.background_stop.cancel();
        self.background.close();
        self.background.wait().await;
        match tokio::time::timeout(SIGN_OFF, state.store.retire(&state.worker)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("cannot remove the status of this daemon: {error}"),
            Err(_) => tracing::warn!("cannot remove the status of this daemon in time"),
        }
    }
}

type BoxedTask = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wakes the pool after each write to the queue by any process.
async fn watch_for_changes(state: Arc<PoolState>, mut options: watch::Receiver<Arc<WorkerOptions>>) {
    let mut seen = ChangeCursor::default();
    let mut last_error: Option<String> = None;
    loop {
        let (poll, max_poll) = {
            let options = options.borrow_and_update();
            (options.poll_interval, options.max_poll_interval)
        };
        let change = tokio::select! {
            change = state.store.change(seen, poll, max_poll) => change,
            Ok(()) = options.changed() => continue,
        };
        match change {
            Ok(cursor) => {
                (seen, last_error) = (cursor, None);
                state.wake.notify_one();
            }
            Err(error) => {
                let text = error.to_string();
                if last_error.as_ref() != Some(&text) {
                    tracing::warn!("cannot watch the queue for new jobs, retrying: {text}");
                }
                last_error = Some(text);
                state.stop_if_fatal(&error);
                tokio::time::sleep(WATCH_RETRY_PAUSE.max(poll)).await;
            }
        }
    }
}
