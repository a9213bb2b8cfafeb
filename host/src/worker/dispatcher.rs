//! The loop that claims jobs and starts attempts. [`Dispatch`](super::machine::dispatch::Dispatch) decides, this loop performs.
//!
//! Claims and attempts run as separate tasks and report back by [`DispatcherMessage`].

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::machine::dispatch::{Action, Capacity, Dispatch, Event};
use super::pool_state::{DispatcherMessage, PoolState};
use super::{WorkerOptions, record, run};
use crate::queue::{Claim, Claimed, Claims, JobType, ParkedClaim, StoreError};

/// The state machine and what its actions need.
pub(super) struct Dispatcher {
    pool: Arc<PoolState>,
    options: watch::Receiver<Arc<WorkerOptions>>,
    /// Changes when other types can be served. Subscribed before the types are first read, so that no change is missed.
    handlers: watch::Receiver<u64>,
    machine: Dispatch,
    parked: Option<ParkedClaim>,
    actions: Vec<Action>,
}

impl Dispatcher {
    pub(super) fn new(pool: Arc<PoolState>, mut options: watch::Receiver<Arc<WorkerOptions>>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let handlers = pool.handlers.changes();
        let capacity = capacity(&pool, &options.borrow_and_update());
        let machine = Dispatch::new(pool.worker.clone(), capacity, cores, Instant::now());
        Self { pool, options, handlers, machine, parked: None, actions: Vec::new() }
    }

    /// Runs until `stopping` is cancelled, then gives back jobs that have not started.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<DispatcherMessage>,
        stopping: CancellationToken,
    ) {
        let pool = self.pool.clone();
        if let Err(error) = pool.store.register(&pool.worker).await {
            tracing::warn!("if this daemon is killed, its jobs wait for their leases to expire: {error}");
        }
        let mut messages = Vec::new();
        loop {
            self.act();
            let wake_at = self.machine.wake_at(Instant::now());
            tokio::select! {
                () = stopping.cancelled() => break,
                _ = inbox.recv_many(&mut messages, 1024) => messages.drain(..).for_each(|message| self.take(message)),
                () = pool.wake.notified() => self.machine.take(Event::Changed, Instant::now()),
                Ok(()) = self.handlers.changed() => self.take_capacity(),
                Ok(()) = self.options.changed() => self.take_capacity(),
                () = sleep_until(wake_at) => {}
            }
        }
        self.wind_down(inbox).await;
    }

    /// Waits for the pending claim and gives back its jobs.
    async fn wind_down(mut self, mut inbox: mpsc::UnboundedReceiver<DispatcherMessage>) {
        self.machine.take(Event::Stop, Instant::now());
        self.act();
        while !self.machine.is_wound_down() {
            let Some(message) = inbox.recv().await else { return };
            self.take(message);
            self.act();
        }
    }

    fn take_capacity(&mut self) {
        let capacity = capacity(&self.pool, &self.options.borrow_and_update());
        self.machine.take(Event::Capacity(capacity), Instant::now());
    }

    fn take(&mut self, message: DispatcherMessage) {
        match message {
            DispatcherMessage::Event(event) => self.machine.take(event, Instant::now()),
            DispatcherMessage::Claimed { number, asked, answer } => self.claimed(number, asked, answer),
        }
    }

    fn claimed(&mut self, number: u64, asked: Instant, answer: Result<Claims, StoreError>) {
        let answer = match answer {
            Ok(claims) => Some(claims),
            Err(error) => {
                tracing::warn!("cannot claim: {error}");
                self.pool.stop_if_fatal(&error);
                None
            }
        };
        let lease = self.options.borrow().lease;
        for job in answer.iter().flat_map(|claims| &claims.jobs) {
            if let Some(earlier) = self.pool.leases().add(&job.lease, asked, lease) {
                earlier.stop();
            }
        }
        self.machine.take(Event::Claimed(number, answer), Instant::now());
    }

    fn act(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.act(Instant::now(), &mut actions);
        actions.drain(..).for_each(|action| self.perform(action));
        self.actions = actions;
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Claim(number, claim) => self.claim(number, claim),
            Action::Park(number, claim) => self.park_claim(number, claim),
            Action::Withdraw(number) => self.withdraw(number),
            Action::Start(job) => self.start(job),
            Action::Release(leases) => {
                let pool = self.pool.clone();
                self.pool.attempts.spawn(async move { record::release(&pool, leases).await });
            }
        }
    }

    fn claim(&self, number: u64, claim: Claim) {
        let pool = self.pool.clone();
        tokio::spawn(async move {
            let asked = Instant::now();
            let answer = pool.store.claim(claim).await;
            _ = pool.dispatcher.send(DispatcherMessage::Claimed { number, asked, answer });
        });
    }

    fn park_claim(&mut self, number: u64, claim: Claim) {
        let (parked, answer) = ParkedClaim::new(claim);
        self.pool.store.park_claim(parked.clone());
        self.parked = Some(parked.clone());
        let pool = self.pool.clone();
        tokio::spawn(async move {
            let answer = answer.await.unwrap_or(Err(StoreError::Closed));
            let message = match parked.taken_at() {
                Some(asked) => DispatcherMessage::Claimed { number, asked, answer },
                None => DispatcherMessage::Event(Event::Withdrawn(number)),
            };
            _ = pool.dispatcher.send(message);
        });
    }

    /// If the claim was already taken, its answer is on the way.
    fn withdraw(&mut self, number: u64) {
        if self.parked.take().is_some_and(|parked| parked.withdraw()) {
            self.machine.take(Event::Withdrawn(number), Instant::now());
            self.act();
        }
    }

    fn start(&mut self, job: Claimed) {
        match self.pool.handlers.current(job.job_type.as_str()) {
            Some(handler) => _ = self.pool.attempts.spawn(run::attempt(self.pool.clone(), job, handler)),
            None => {
                self.machine.take(Event::NotStarted(job.job_type), Instant::now());
                self.perform(Action::Release(vec![job.lease]));
            }
        }
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

/// What the pool may run now.
fn capacity(pool: &PoolState, options: &WorkerOptions) -> Capacity {
    let slots = options.concurrency.get() as usize;
    let job_types = pool.job_types.load();
    let served = pool.handlers.serving().into_iter().filter(|name| options.types.includes(name));
    let limit =
        |job_type: &JobType| job_types.of(job_type.as_str()).concurrency.map_or(slots, |limit| limit.get() as usize);
    Capacity {
        slots,
        types: served.filter_map(|name| JobType::parse(&name).ok()).map(|name| (name.clone(), limit(&name))).collect(),
        lease: options.lease,
        poll: (options.poll_interval, options.max_poll_interval),
    }
}
