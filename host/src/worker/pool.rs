//! The pool: one loop that owns the truth about slots. It takes a permit, then claims, then starts.
//!
//! Attempts and claims run as tasks of their own and report back by [`Event`]; nothing else changes the loop's state.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ahead::Ahead;
use super::live::Live;
use super::{Handlers, Options, Rules, cleaner, herald, keeper, run};
use crate::queue::{Claim, Claimed, Claims, JobType, Lease, Store, StoreError, Timestamp, Want};

/// A job that was claimed ahead and has not started by then is given back, so that another daemon may run it.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the last second of a shutdown is left for writing down what was stopped.
const LAST_WRITES: Duration = Duration::from_millis(600);

/// How long signing off may take; whoever does not is taken for gone a little later.
const SIGN_OFF: Duration = Duration::from_millis(200);

/// What a pool is made of.
pub struct Setup {
    /// The queue.
    pub store: Arc<dyn Store>,
    /// What runs the jobs.
    pub handlers: Arc<dyn Handlers>,
    /// How to go about it.
    pub options: Options,
}

/// A running pool: claims due jobs and runs their handlers until it is stopped.
pub struct Pool {
    shared: Arc<Shared>,
    options: watch::Sender<Arc<Options>>,
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
    pub(super) live: Live,
    pub(super) attempts: TaskTracker,
    pub(super) recorded: AtomicU64,
    /// The queue was deleted or replaced under this pool.
    pub(super) gone: CancellationToken,
    /// This daemon's name in the rows; another one at each start, so that a restart is not taken for its predecessor.
    pub(super) worker: Arc<str>,
    pub(super) started_at: Timestamp,
    /// Says that there may be work to claim.
    pub(super) wake: Notify,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

/// What happens to a pool.
pub(super) enum Event {
    /// A guest has ended; its slot is free.
    Ended { job_type: JobType, took: Duration },
    /// A claim has been answered.
    Claimed { answer: Result<Claims, StoreError>, wake: u64 },
}

impl Pool {
    /// Starts claiming. Must be called on a tokio runtime.
    pub fn start(setup: Setup) -> Self {
        let Setup { store, handlers, options } = setup;
        let (events, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            store,
            handlers,
            rules: ArcSwap::from_pointee(options.rules.clone()),
            live: Live::default(),
            attempts: TaskTracker::new(),
            recorded: AtomicU64::new(0),
            gone: CancellationToken::new(),
            worker: worker_name().into(),
            started_at: Timestamp::now(),
            wake: Notify::new(),
            events,
        });
        let (options, current) = watch::channel(Arc::new(options));
        let (stopping, chores_over, chores) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        let chore = |task: BoxedChore| _ = chores.spawn(chores_over.clone().run_until_cancelled_owned(task));
        chore(Box::pin(keeper::keep(shared.clone(), current.clone())));
        chore(Box::pin(cleaner::clean(shared.clone(), current.clone())));
        chore(Box::pin(herald::announce(shared.clone(), current.clone())));
        chore(Box::pin(look_elsewhere(shared.clone(), current.clone())));
        chore(Box::pin(look_at_handlers(shared.clone())));
        let dispatcher = Dispatcher::new(shared.clone(), current);
        let dispatcher = tokio::spawn(dispatcher.run(inbox, stopping.clone()));
        Self { shared, options, stopping, dispatcher, chores, chores_over }
    }

    /// This daemon's name, as it stands in the `worker` column.
    pub fn worker(&self) -> &str {
        &self.shared.worker
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

    /// Takes new settings; what runs goes on under the old ones.
    pub fn reconfigure(&self, options: Options) {
        self.shared.rules.store(Arc::new(options.rules.clone()));
        self.options.send_replace(Arc::new(options));
        self.shared.wake.notify_one();
    }

    /// Stops: claims nothing more, gives back what has not started, lets running attempts end within the grace of the
    /// settings, stops those that have not by then or when `at_once` is cancelled, and gives them back too.
    ///
    /// Returns within the grace plus one second, whatever the guests do.
    pub async fn stop(self, at_once: CancellationToken) {
        let grace = self.options.borrow().shutdown_grace;
        self.stopping.cancel();
        let shared = &self.shared;
        let all_ended = async {
            _ = self.dispatcher.await;
            shared.attempts.close();
            shared.attempts.wait().await;
        };
        tokio::pin!(all_ended);
        let in_time = tokio::select! {
            () = &mut all_ended => true,
            () = tokio::time::sleep(grace) => false,
            () = at_once.cancelled() => false,
        };
        if !in_time {
            shared.live.taps().into_iter().for_each(|(_, tap)| tap.stop());
            _ = tokio::time::timeout(LAST_WRITES, all_ended).await;
        }
        self.chores_over.cancel();
        self.chores.close();
        self.chores.wait().await;
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

/// Wakes the pool when another process has written to the queue.
async fn look_elsewhere(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) {
    loop {
        let pause = options.borrow().poll_interval;
        tokio::time::sleep(pause).await;
        match shared.store.changed_elsewhere().await {
            Ok(true) => shared.wake.notify_one(),
            Ok(false) => {}
            Err(error) => tracing::warn!("cannot look for new jobs: {error}"),
        }
    }
}

/// Wakes the pool when a handler has come or gone.
async fn look_at_handlers(shared: Arc<Shared>) {
    loop {
        shared.handlers.changed().await;
        shared.wake.notify_one();
    }
}

/// A claimed job that waits for a slot.
struct Ready {
    job: Claimed,
    since: Instant,
}

/// How many of a type, in slots and waiting for one.
#[derive(Default)]
struct Tally {
    running: usize,
    ready: usize,
}

struct Dispatcher {
    shared: Arc<Shared>,
    options: watch::Receiver<Arc<Options>>,
    ahead: Ahead,
    ready: VecDeque<Ready>,
    running: usize,
    tallies: HashMap<JobType, Tally>,
    claiming: bool,
    /// Whether a claim may find something.
    hungry: bool,
    /// Whether the last claim left something out because its type is at its limit.
    held_back: bool,
    /// Counts wake-ups, to tell one that came while a claim was under way.
    wakes: u64,
    /// When to claim although nothing has woken the pool.
    next_look: Instant,
    pause: Duration,
}

impl Dispatcher {
    fn new(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) -> Self {
        let pause = options.borrow().poll_interval;
        Self {
            shared,
            options,
            ahead: Ahead::new(std::thread::available_parallelism().map_or(1, usize::from)),
            ready: VecDeque::new(),
            running: 0,
            tallies: HashMap::new(),
            claiming: false,
            hungry: true,
            held_back: false,
            wakes: 0,
            next_look: Instant::now(),
            pause,
        }
    }

    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Event>, stopping: CancellationToken) {
        let mut events = Vec::new();
        let shared = self.shared.clone();
        loop {
            self.start_ready();
            self.give_back_overdue();
            self.claim();
            let alarm = tokio::time::sleep_until(self.alarm().into());
            tokio::select! {
                () = stopping.cancelled() => break,
                _ = inbox.recv_many(&mut events, 1024) => events.drain(..).for_each(|event| self.take(event)),
                () = shared.wake.notified() => self.woken(),
                () = alarm => self.look_if_due(),
            }
        }
        self.finish(inbox).await;
    }

    /// After the last claim: waits for its answer and gives everything back that has not started.
    async fn finish(mut self, mut inbox: mpsc::UnboundedReceiver<Event>) {
        while self.claiming {
            match inbox.recv().await {
                Some(event) => self.take(event),
                None => break,
            }
        }
        let leases = self.ready.drain(..).map(|ready| ready.job.lease).collect();
        release(&self.shared, leases).await;
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ended { job_type, took } => self.ended(&job_type, took),
            Event::Claimed { answer, wake } => self.claimed(answer, wake),
        }
    }

    fn ended(&mut self, job_type: &JobType, took: Duration) {
        self.ahead.measured(job_type, took);
        self.running -= 1;
        self.tally(job_type).running -= 1;
        self.hungry |= self.held_back;
    }

    fn woken(&mut self) {
        self.wakes += 1;
        self.hungry = true;
        self.pause = self.options.borrow().poll_interval;
    }

    fn look_if_due(&mut self) {
        self.hungry |= Instant::now() >= self.next_look;
    }

    /// When the loop must run although nothing happens.
    fn alarm(&self) -> Instant {
        let overdue = self.ready.front().map(|ready| ready.since + PATIENCE);
        match overdue {
            Some(overdue) if self.hungry => overdue,
            Some(overdue) => overdue.min(self.next_look),
            None if self.hungry => Instant::now() + PATIENCE,
            None => self.next_look,
        }
    }

    /// Starts waiting jobs in their order, as long as there are slots; those whose type is at its limit are passed over.
    fn start_ready(&mut self) {
        let slots = self.slots();
        let mut at = 0;
        while self.running < slots && at < self.ready.len() {
            let job_type = &self.ready[at].job.job_type;
            if self.running_of(job_type) >= self.limit_of(job_type, slots) {
                at += 1;
            } else if let Some(ready) = self.ready.remove(at) {
                self.tally(&ready.job.job_type).ready -= 1;
                self.start(ready.job);
            }
        }
    }

    fn start(&mut self, job: Claimed) {
        let Some(handler) = self.shared.handlers.current(job.job_type.as_str()) else {
            let shared = self.shared.clone();
            self.shared.attempts.spawn(async move { release(&shared, vec![job.lease]).await });
            return;
        };
        self.running += 1;
        self.tally(&job.job_type).running += 1;
        self.shared.attempts.spawn(run::attempt(self.shared.clone(), job, handler));
    }

    /// Gives back what has waited too long: the slots are taken by something longer than was measured.
    fn give_back_overdue(&mut self) {
        let mut leases = Vec::new();
        while let Some(Ready { job, .. }) = self.ready.pop_front_if(|ready| ready.since.elapsed() >= PATIENCE) {
            self.ahead.waited_in_vain(&job.job_type);
            self.tally(&job.job_type).ready -= 1;
            leases.push(job.lease);
        }
        if leases.is_empty() {
            return;
        }
        self.held_back = true;
        let shared = self.shared.clone();
        self.shared.attempts.spawn(async move { release(&shared, leases).await });
    }

    /// Claims if there is room and a reason to look.
    fn claim(&mut self) {
        if self.claiming || !self.hungry {
            return;
        }
        let slots = self.slots();
        let free = slots.saturating_sub(self.running + self.ready.len());
        let (wants, ahead) = self.wants(slots, free);
        let limit = free + ahead;
        if wants.is_empty() {
            self.hungry = free == 0 && self.hungry;
            self.next_look = Instant::now() + self.options.borrow().max_poll_interval;
            return;
        }
        self.claiming = true;
        let claim = Claim { wants, limit, lease: self.options.borrow().lease, worker: self.shared.worker.clone() };
        let (shared, wake) = (self.shared.clone(), self.wakes);
        tokio::spawn(async move {
            let answer = shared.store.claim(claim).await;
            _ = shared.events.send(Event::Claimed { answer, wake });
        });
    }

    /// What can be taken now of each type, and how much of it ahead of a free slot.
    /// Few at a time are not worth a claim of their own while enough are waiting.
    fn wants(&mut self, slots: usize, free: usize) -> (Vec<Want>, usize) {
        let serve = self.options.borrow().types.clone();
        let mut wants = Vec::new();
        let mut most_ahead = 0;
        self.held_back = false;
        for name in self.shared.handlers.serving().into_iter().filter(|name| serve.includes(name)) {
            let Ok(job_type) = JobType::parse(&name) else { continue };
            let limit = self.limit_of(&job_type, slots);
            let (running, ready) = self.tallies.get(&job_type).map_or((0, 0), |tally| (tally.running, tally.ready));
            let ahead = self.ahead.of(&name);
            let room_ahead = ahead.saturating_sub(ready);
            let room_ahead = if room_ahead >= ahead / 2 { room_ahead } else { 0 };
            let most = free.min(limit.saturating_sub(running + ready)) + room_ahead;
            self.held_back |= limit < slots && most < slots;
            most_ahead = most_ahead.max(room_ahead);
            if most > 0 {
                wants.push(Want { job_type, most });
            }
        }
        (wants, most_ahead)
    }

    fn claimed(&mut self, answer: Result<Claims, StoreError>, wake: u64) {
        self.claiming = false;
        let (poll, longest) = (self.options.borrow().poll_interval, self.options.borrow().max_poll_interval);
        let claims = match answer {
            Ok(claims) => claims,
            Err(error) => {
                tracing::warn!("cannot claim: {error}");
                Claims { jobs: Vec::new(), next_due: None }
            }
        };
        if claims.jobs.is_empty() {
            self.hungry = self.wakes != wake;
            self.next_look = Instant::now() + claims.next_due.map_or(self.pause, |due| due.min(self.pause));
            self.pause = (self.pause * 2).clamp(poll, longest.max(poll));
            return;
        }
        self.pause = poll;
        let since = Instant::now();
        for job in claims.jobs {
            self.shared.live.add(job.lease);
            self.tally(&job.job_type).ready += 1;
            self.ready.push_back(Ready { job, since });
        }
    }

    fn slots(&self) -> usize {
        self.options.borrow().concurrency.get() as usize
    }

    /// Slots that `job_type` may hold of all `slots`.
    fn limit_of(&self, job_type: &JobType, slots: usize) -> usize {
        let limit = self.shared.rules.load().of(job_type.as_str()).concurrency;
        limit.map_or(slots, |limit| (limit.get() as usize).min(slots))
    }

    fn running_of(&self, job_type: &JobType) -> usize {
        self.tallies.get(job_type).map_or(0, |tally| tally.running)
    }

    fn tally(&mut self, job_type: &JobType) -> &mut Tally {
        if !self.tallies.contains_key(job_type) {
            self.tallies.insert(job_type.clone(), Tally::default());
        }
        self.tallies.get_mut(job_type).unwrap_or_else(|| unreachable!("it has just been inserted"))
    }
}

/// Gives back leases whose guest never started.
async fn release(shared: &Shared, leases: Vec<Lease>) {
    if leases.is_empty() {
        return;
    }
    if let Err(error) = shared.store.release(leases.clone()).await {
        tracing::warn!("cannot give back {} jobs, they wait for their lease to expire: {error}", leases.len());
    }
    leases.into_iter().for_each(|lease| shared.live.remove(lease));
}
