//! The loop that owns the truth about slots. It takes a permit, then claims, then starts.
//!
//! Attempts and claims run as tasks of their own and report back by [`Event`]; nothing else changes the loop's state.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::ahead::Ahead;
use super::pool::{Event, Shared};
use super::{Options, run};
use crate::queue::{Claim, Claimed, Claims, JobType, Lease, StandingClaim, StoreError, Want};

/// A job that was claimed ahead and has not started by then is given back, so that another daemon may run it.
const PATIENCE: Duration = Duration::from_millis(100);

/// The longest pause between two tries to give back.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

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

/// The state of the loop.
pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    options: watch::Receiver<Arc<Options>>,
    ahead: Ahead,
    ready: VecDeque<Ready>,
    running: usize,
    tallies: HashMap<JobType, Tally>,
    claiming: bool,
    /// What was left with the store while there is nothing to claim.
    standing: Option<StandingClaim>,
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
    pub(super) fn new(shared: Arc<Shared>, options: watch::Receiver<Arc<Options>>) -> Self {
        let pause = options.borrow().poll_interval;
        Self {
            shared,
            options,
            ahead: Ahead::new(std::thread::available_parallelism().map_or(1, usize::from)),
            ready: VecDeque::new(),
            running: 0,
            tallies: HashMap::new(),
            claiming: false,
            standing: None,
            hungry: true,
            held_back: false,
            wakes: 0,
            next_look: Instant::now(),
            pause,
        }
    }

    /// Claims and starts until it is told to stop; then gives back what has not started.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Event>, stopping: CancellationToken) {
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
        self.withdraw();
        while self.claiming {
            match inbox.recv().await {
                Some(event) => self.take(event),
                None => break,
            }
            // An empty answer leaves another one behind.
            self.withdraw();
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
        if !self.hungry {
            return;
        }
        self.withdraw();
        if self.claiming {
            return;
        }
        let Some(claim) = self.wanted() else {
            self.hungry = self.free() == 0;
            self.next_look = Instant::now() + self.options.borrow().max_poll_interval;
            return;
        };
        self.claiming = true;
        let (shared, wake) = (self.shared.clone(), self.wakes);
        tokio::spawn(async move {
            let answer = shared.store.claim(claim).await;
            _ = shared.events.send(Event::Claimed { answer, wake });
        });
    }

    /// Leaves the claim that found nothing with the store, for jobs that are added in this process.
    fn stand_by(&mut self) {
        let Some(claim) = self.wanted() else { return };
        let (standing, answer) = StandingClaim::new(claim);
        self.shared.store.stand_by(standing.clone());
        self.standing = Some(standing.clone());
        let (shared, wake) = (self.shared.clone(), self.wakes);
        tokio::spawn(async move {
            let answer = answer.await.unwrap_or(Err(StoreError::Closed));
            if !standing.is_withdrawn() {
                _ = shared.events.send(Event::Claimed { answer, wake });
            }
        });
    }

    /// Takes back what was left with the store; where that is too late, its answer is waited for like that of any claim.
    fn withdraw(&mut self) {
        if let Some(standing) = self.standing.take() {
            self.claiming |= !standing.withdraw();
        }
    }

    /// A claim of all that can be taken now; `None` when that is nothing.
    fn wanted(&mut self) -> Option<Claim> {
        let wants = self.wants(self.slots(), self.free());
        let (slots, lease) = (self.free(), self.options.borrow().lease);
        (!wants.is_empty()).then(|| Claim { wants, slots, lease, worker: self.shared.worker.clone() })
    }

    fn free(&self) -> usize {
        self.slots().saturating_sub(self.running + self.ready.len())
    }

    /// What can be taken now of each type, and how much of it ahead of a free slot.
    /// Few at a time are not worth a claim of their own while enough are waiting.
    fn wants(&mut self, slots: usize, free: usize) -> Vec<Want> {
        let serve = self.options.borrow().types.clone();
        let mut wants = Vec::new();
        self.held_back = false;
        for name in self.shared.handlers.serving().into_iter().filter(|name| serve.includes(name)) {
            let Ok(job_type) = JobType::parse(&name) else { continue };
            let limit = self.limit_of(&job_type, slots);
            let (running, ready) = self.tallies.get(&job_type).map_or((0, 0), |tally| (tally.running, tally.ready));
            let ahead = self.ahead.of(&name);
            let room_ahead = ahead.saturating_sub(ready);
            let room_ahead = if room_ahead >= ahead / 2 { room_ahead } else { 0 };
            let own = free.min(limit.saturating_sub(running + ready));
            self.held_back |= limit < slots && own + room_ahead < slots;
            if own + room_ahead > 0 {
                wants.push(Want { job_type, slots: own, ahead: room_ahead });
            }
        }
        wants
    }

    fn claimed(&mut self, answer: Result<Claims, StoreError>, wake: u64) {
        self.claiming = false;
        self.standing = None;
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
            if !self.hungry {
                self.stand_by();
            }
            return;
        }
        self.hungry = true;
        self.pause = poll;
        let since = Instant::now();
        for job in claims.jobs {
            self.shared.live.add(job.lease.clone());
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
        self.tallies.entry(job_type.clone()).or_default()
    }
}

/// Gives back leases whose guest never started; as long as the disk or a lock stands in the way, again and again.
async fn release(shared: &Shared, leases: Vec<Lease>) {
    if leases.is_empty() {
        return;
    }
    let mut pause = PATIENCE;
    loop {
        match shared.store.release(leases.clone()).await {
            Ok(()) => break,
            Err(error) if error.is_transient() => {
                tracing::warn!("cannot give back {} jobs, trying again: {error}", leases.len());
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                tracing::error!("cannot give back {} jobs: {error}", leases.len());
                break;
            }
        }
    }
    leases.iter().for_each(|lease| shared.live.remove(lease));
}
