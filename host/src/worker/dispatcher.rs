//! The loop that claims and starts: carries out what [`Dispatch`](super::machine::dispatch::Dispatch) decides.
//!
//! Attempts and claims run as tasks of their own and report back by [`Event`]; nothing else changes the machine.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::machine::dispatch::{Action, Capacity, Dispatch, Event};
use super::machine::drain::{Drain, Step};
use super::pool::Shared;
use super::{WorkerOptions, release, run};
use crate::queue::{Claim, Claimed, Claims, JobType, ParkedClaim, StoreError};

/// What reaches the dispatcher from its tasks.
pub(super) enum Report {
    /// Something happened that the machine wants to know.
    Event(Event),
    /// A claim was answered. The leases hold from `asked` on, at least.
    Claimed { number: u64, asked: Instant, answer: Result<Claims, StoreError> },
}

/// The loop's state beside the machine's.
pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    options: watch::Receiver<Arc<WorkerOptions>>,
    /// Tells when other types can be served. Taken before the machine is told which: no change falls between.
    handlers: watch::Receiver<u64>,
    machine: Dispatch,
    standing: Option<ParkedClaim>,
    /// Set once a drain was requested.
    drain: Option<Drain>,
    actions: Vec<Action>,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<Shared>, mut options: watch::Receiver<Arc<WorkerOptions>>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let handlers = shared.handlers.changes();
        let capacity = capacity(&shared, &options.borrow_and_update());
        let machine = Dispatch::new(shared.worker.clone(), capacity, cores, Instant::now());
        Self { shared, options, handlers, machine, standing: None, drain: None, actions: Vec::new() }
    }

    /// Claims and starts until it is told to stop; then gives back what has not started.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Report>, stopping: CancellationToken) {
        let shared = self.shared.clone();
        if let Err(error) = shared.store.register(&shared.worker).await {
            tracing::warn!("after a crash, the jobs of this daemon wait for their leases: {error}");
        }
        let mut reports = Vec::new();
        loop {
            self.act();
            self.look_drained();
            let wake_at = self.machine.wake_at(Instant::now());
            tokio::select! {
                () = stopping.cancelled() => break,
                _ = inbox.recv_many(&mut reports, 1024) => reports.drain(..).for_each(|report| self.take(report)),
                () = shared.wake.notified() => self.machine.take(Event::Changed, Instant::now()),
                Ok(()) = self.handlers.changed() => self.take_capacity(),
                Ok(()) = self.options.changed() => self.take_capacity(),
                () = shared.drain_requested.cancelled(), if self.drain.is_none() => {
                    self.drain = Some(Drain::default());
                    self.take_capacity();
                }
                () = sleep_until(wake_at) => {}
            }
        }
        self.wind_down(inbox).await;
    }

    /// Waits for the claim that is out, and gives back what it brings.
    async fn wind_down(mut self, mut inbox: mpsc::UnboundedReceiver<Report>) {
        self.machine.take(Event::Stop, Instant::now());
        self.act();
        while !self.machine.is_wound_down() {
            let Some(report) = inbox.recv().await else { return };
            self.take(report);
            self.act();
        }
    }

    /// While draining: finds out whether anything is left to do.
    fn look_drained(&mut self) {
        let Some(drain) = &mut self.drain else { return };
        let is_quiet = self.machine.is_idle(Instant::now()) && self.shared.leases().all().is_empty();
        match drain.look(is_quiet, self.shared.recorded.load(Ordering::Relaxed)) {
            Step::Wait => {}
            Step::Claim => {
                self.machine.take(Event::Changed, Instant::now());
                self.act();
            }
            Step::Drained => self.shared.drained.cancel(),
        }
    }

    fn take_capacity(&mut self) {
        let capacity = capacity(&self.shared, &self.options.borrow_and_update());
        self.machine.take(Event::Capacity(capacity), Instant::now());
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Event(event) => self.machine.take(event, Instant::now()),
            Report::Claimed { number, asked, answer } => self.claimed(number, asked, answer),
        }
    }

    fn claimed(&mut self, number: u64, asked: Instant, answer: Result<Claims, StoreError>) {
        let answer = match answer {
            Ok(claims) => Some(claims),
            Err(error) => {
                tracing::warn!("cannot claim: {error}");
                self.shared.note(&error);
                None
            }
        };
        let length = self.options.borrow().lease;
        for job in answer.iter().flat_map(|claims| &claims.jobs) {
            if let Some(earlier) = self.shared.leases().add(&job.lease, asked, length) {
                earlier.stop();
            }
        }
        self.machine.take(Event::Claimed(number, answer), Instant::now());
    }

    fn act(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.act(Instant::now(), &mut actions);
        actions.drain(..).for_each(|action| self.carry_out(action));
        self.actions = actions;
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Claim(number, claim) => self.claim(number, claim),
            Action::StandBy(number, claim) => self.park_claim(number, claim),
            Action::Withdraw(number) => self.withdraw(number),
            Action::Start(job) => self.start(job),
            Action::Release(leases) => {
                let shared = self.shared.clone();
                self.shared.attempts.spawn(async move { release::release(&shared, leases).await });
            }
        }
    }

    fn claim(&self, number: u64, claim: Claim) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let asked = Instant::now();
            let answer = shared.store.claim(claim).await;
            _ = shared.reports.send(Report::Claimed { number, asked, answer });
        });
    }

    fn park_claim(&mut self, number: u64, claim: Claim) {
        let (standing, answer) = ParkedClaim::new(claim);
        self.shared.store.park_claim(standing.clone());
        self.standing = Some(standing.clone());
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let answer = answer.await.unwrap_or(Err(StoreError::Closed));
            let report = match standing.taken_at() {
                Some(asked) => Report::Claimed { number, asked, answer },
                None => Report::Event(Event::Withdrawn(number)),
            };
            _ = shared.reports.send(report);
        });
    }

    /// Where it is too late, the answer is on its way.
    fn withdraw(&mut self, number: u64) {
        if self.standing.take().is_some_and(|standing| standing.withdraw()) {
            self.machine.take(Event::Withdrawn(number), Instant::now());
            self.act();
        }
    }

    fn start(&mut self, job: Claimed) {
        match self.shared.handlers.current(job.job_type.as_str()) {
            Some(handler) => _ = self.shared.attempts.spawn(run::attempt(self.shared.clone(), job, handler)),
            None => {
                self.machine.take(Event::NotStarted(job.job_type), Instant::now());
                self.carry_out(Action::Release(vec![job.lease]));
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

/// What the pool may do now.
fn capacity(shared: &Shared, options: &WorkerOptions) -> Capacity {
    let slots = options.concurrency.get() as usize;
    let rules = shared.rules.load();
    let served = shared.handlers.serving().into_iter().filter(|name| options.types.includes(name));
    let limit =
        |job_type: &JobType| rules.of(job_type.as_str()).concurrency.map_or(slots, |limit| limit.get() as usize);
    Capacity {
        slots,
        types: served.filter_map(|name| JobType::parse(&name).ok()).map(|name| (name.clone(), limit(&name))).collect(),
        lease: options.lease,
        poll: (options.poll_interval, options.max_poll_interval),
    }
}
