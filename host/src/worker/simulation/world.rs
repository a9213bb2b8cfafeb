//! The world of one history: the clock, the store and what fails, and the order of events.

mod checks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fastrand::Rng;

use super::daemon::{Daemon, Guest, Key, LEASE, Stopping, job_type, key};
use super::script::{Input, Job, Script, TYPES};
use crate::queue::memory::{LostAttempts, Table};
use crate::queue::{
    self, AttemptRecord, AttemptWrite, Backoff, Claim, Claimed, Claims, Due, Id, Lease, NewJob, Outcome, Payload,
    Receipt, Rescued, RetryPolicies, RetryPolicy, StaleLease, Status, Timestamp, WorkerName,
};
use crate::sandbox::GuestOutcome as End;
use crate::worker::attempt::{Verdict, decide};
use crate::worker::machine::dispatch::{Action, Dispatch, Event};
use crate::worker::machine::leases::Start;
use crate::worker::machine::shutdown::{Action as StopAction, Event as StopEvent, Shutdown};
use crate::worker::{JobTypeOptions, reaper};

/// A free slot and a due job that it may take must not stand beside each other for longer.
const LOOK: Duration = Duration::from_millis(160);

/// How long after a trouble of the store nobody is blamed for being slow.
const RECOVERY: Duration = Duration::from_secs(6);

/// How long after the end of a script every job must have ended.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a guest that hangs may run.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A history that takes more has a loop that does nothing.
const MOST_STEPS: u64 = 60_000;

const GRACE_AFTER_CANCEL: Duration = Duration::from_secs(5);

/// A call of a daemon to the store.
enum Call {
    Claim(u64, Claim),
    Renew(Vec<Lease>),
    StaleLease(Vec<Lease>),
    /// Whether expired leases are judged too.
    Rescue(bool),
    End(Box<Claimed>, Verdict),
    Release(Vec<Lease>),
}

/// The store's answer; `None` where the call failed.
enum Answer {
    Claim(u64, Instant, Option<Claims>),
    Renew(Instant, Vec<Lease>, Option<Vec<StaleLease>>),
    StaleLease(Option<Vec<StaleLease>>),
    Rescue(Option<usize>),
    End(Box<Claimed>, Verdict, bool),
    Release(Vec<Lease>, bool),
}

enum WorldEvent {
    Input(usize),
    /// Trouble of the store, or the script, is over.
    Recover,
    Check,
    Restart(usize),
    ServedTypes(usize, usize),
    Of(usize, u32, ProcessEvent),
}

/// WorldEvent process_event within a process; forgotten when it dies.
enum ProcessEvent {
    Notice,
    Wake,
    Beat,
    /// The store takes a call that was made at this instant.
    Call(Instant, Call),
    Answer(Answer),
    /// The task of an attempt is polled for the first time.
    FirstPoll(Box<Claimed>),
    GuestEnds(Key),
    StopGuest(Key),
    StopTick,
}

struct Scheduled {
    at: Duration,
    number: u64,
    what: WorldEvent,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// One history under way.
pub(super) struct World<'s> {
    script: &'s Script,
    rng: Rng,
    base: Instant,
    now: Duration,
    /// How far the wall clock is from the right time, in milliseconds, and the furthest it has been.
    clock: (i64, i64),
    events: BinaryHeap<Reverse<Scheduled>>,
    number: u64,
    table: Table,
    policies: RetryPolicies,
    type_options: JobTypeOptions,
    ids: Vec<Id>,
    daemons: Vec<Option<Daemon>>,
    /// Counts the lives of each daemon.
    lives: Vec<u32>,
    /// The start notes of processes that died and were not reaped.
    dead_workers: BTreeMap<WorkerName, BTreeSet<Key>>,
    /// Every guest that ever started.
    started: BTreeSet<Key>,
    locked_until: Duration,
    failing_until: Duration,
    losing_until: Duration,
    trouble_until: Duration,
    /// The same of what keeps daemons from renewing.
    stalled_until: Duration,
    clock_set_at: Option<Instant>,
    /// Jobs that a daemon has leased without hearing of it.
    orphans: BTreeSet<Id>,
    verbose: bool,
}

type Check = Result<(), String>;

impl<'s> World<'s> {
    /// Runs a script to its end and tells how many steps that took.
    pub(super) fn run(script: &'s Script, verbose: bool) -> Result<u64, String> {
        let mut world = Self::new(script, verbose);
        for daemon in 0..script.slots.len() {
            world.start(daemon);
        }
        for (number, (at, _)) in script.inputs.iter().enumerate() {
            world.schedule(*at, WorldEvent::Input(number));
        }
        let end = script.inputs.last().map_or(Duration::ZERO, |(at, _)| *at) + Duration::from_secs(1);
        world.schedule(end, WorldEvent::Recover);
        world.schedule(Duration::from_millis(40), WorldEvent::Check);
        let mut steps = 0;
        while let Some(Reverse(Scheduled { at, what, .. })) = world.events.pop() {
            world.now = world.now.max(at);
            steps += 1;
            world.step(what)?;
            if steps > MOST_STEPS {
                return Err(format!("spins: {steps} steps in {:?}: {:?}", world.now, world.dispatchers()));
            }
            if world.now > end && world.is_settled() {
                return world.final_check().map(|()| steps);
            }
            if world.now > end + PATIENCE {
                return Err(format!(
                    "starved: after {PATIENCE:?} of peace not every job has ended: {}",
                    world.unfinished()
                ));
            }
        }
        Err("starved: nothing process_event any more".into())
    }

    fn new(script: &'s Script, verbose: bool) -> Self {
        let backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1), jitter: 0.0 };
        let policy = RetryPolicy { backoff, ..RetryPolicy::default() };
        Self {
            script,
            rng: Rng::with_seed(script.seed ^ 0x5eed),
            base: Instant::now(),
            now: Duration::ZERO,
            clock: (0, 0),
            events: BinaryHeap::new(),
            number: 0,
            table: Table::default(),
            policies: RetryPolicies { default: policy.clone(), ..RetryPolicies::default() },
            type_options: JobTypeOptions { policy, ..JobTypeOptions::default() },
            ids: Vec::new(),
            daemons: script.slots.iter().map(|_| None).collect(),
            lives: vec![0; script.slots.len()],
            dead_workers: BTreeMap::new(),
            started: BTreeSet::new(),
            locked_until: Duration::ZERO,
            failing_until: Duration::ZERO,
            losing_until: Duration::ZERO,
            trouble_until: Duration::ZERO,
            stalled_until: Duration::ZERO,
            clock_set_at: None,
            orphans: BTreeSet::new(),
            verbose,
        }
    }

    // Time.

    fn instant(&self) -> Instant {
        self.base + self.now
    }

    fn wall_millis(&self) -> i64 {
        1_800_000_000_000 + i64::try_from(self.now.as_millis()).unwrap_or(0) + self.clock.0
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.wall_millis())
    }

    fn system_time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(u64::try_from(self.wall_millis()).unwrap_or(0)) + self.sub_millis()
    }

    fn sub_millis(&self) -> Duration {
        Duration::from_nanos(u64::from(self.now.subsec_nanos() % 1_000_000))
    }

    fn schedule(&mut self, at: Duration, what: WorldEvent) {
        self.number += 1;
        self.events.push(Reverse(Scheduled { at, number: self.number, what }));
    }

    fn schedule_in(&mut self, daemon: usize, delay: Duration, own: ProcessEvent) {
        self.schedule(self.now + delay, WorldEvent::Of(daemon, self.lives[daemon], own));
    }

    fn micros(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_micros(self.rng.u64(range))
    }

    fn trace(&self, text: impl FnOnce() -> String) {
        if self.verbose {
            println!("{:>12.6} {}", self.now.as_secs_f64(), text());
        }
    }

    // WorldEvent process_event.

    fn step(&mut self, what: WorldEvent) -> Check {
        match what {
            WorldEvent::Input(number) => {
                let input = self.script.inputs[number].1.clone();
                self.trace(|| format!("{input:?}"));
                self.input(input);
                Ok(())
            }
            WorldEvent::Recover => {
                self.recover();
                Ok(())
            }
            WorldEvent::Check => self.check(),
            WorldEvent::Restart(daemon) => {
                if self.daemons[daemon].is_none() {
                    self.start(daemon);
                }
                Ok(())
            }
            WorldEvent::ServedTypes(daemon, kind) => {
                self.serve(daemon, kind, true);
                Ok(())
            }
            WorldEvent::Of(daemon, life, own) => {
                let Some(process) = self.daemons[daemon].as_mut().filter(|_| life == self.lives[daemon]) else {
                    return Ok(());
                };
                if let Some(until) = process.frozen_until.filter(|until| *until > self.now) {
                    self.schedule(until, WorldEvent::Of(daemon, life, own));
                    return Ok(());
                }
                self.process_event(daemon, own)
            }
        }
    }

    fn input(&mut self, input: Input) {
        match input {
            Input::Enqueue { via, jobs } => self.enqueue(via, &jobs),
            Input::Cancel { nth, retry } => self.cancel(nth, retry),
            Input::Kill { daemon, down } => self.kill(daemon, down),
            Input::Stop { daemon, grace, down } => self.stop(daemon, grace, down),
            Input::Freeze { daemon, pause } => {
                let until = self.now + pause;
                if let Some(process) = self.daemons[daemon].as_mut().filter(|process| process.stopping.is_none()) {
                    process.frozen_until = process.frozen_until.max(Some(until));
                }
            }
            Input::SetClock { by } => self.set_clock(self.clock.0 + by),
            Input::Lock { pause } => self.trouble(pause, |world, until| world.locked_until = until),
            Input::Fail { pause } => self.trouble(pause, |world, until| world.failing_until = until),
            Input::LoseAnswers { pause } => self.trouble(pause, |world, until| world.losing_until = until),
            Input::Unserve { daemon, kind, pause } => {
                self.serve(daemon, kind, false);
                self.schedule(self.now + pause, WorldEvent::ServedTypes(daemon, kind));
            }
            Input::Resize { daemon, slots } => self.resize(daemon, slots),
        }
    }

    fn trouble(&mut self, pause: Duration, begin: impl Fn(&mut Self, Duration)) {
        let until = self.now + pause;
        begin(self, until);
        self.trouble_until = self.trouble_until.max(until);
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Sees to it that all jobs can come to their end: every daemon runs, and the clock is past every instant it has shown.
    fn recover(&mut self) {
        self.set_clock(self.clock.1);
        for daemon in 0..self.daemons.len() {
            if self.daemons[daemon].is_none() {
                self.start(daemon);
            }
        }
    }

    fn set_clock(&mut self, offset: i64) {
        self.clock = (offset, self.clock.1.max(offset));
        self.clock_set_at = Some(self.instant());
        // Leases of before may be over at once, or seem to hold for long: neither is a fault of the daemons.
        self.trouble_until = self.trouble_until.max(self.now + LEASE);
    }

    fn enqueue(&mut self, via: Option<usize>, jobs: &[Job]) {
        let now = self.timestamp();
        let new: Vec<NewJob> = jobs.iter().map(|job| self.new_job(job)).collect();
        self.table.enqueue(new, now).expect("new ids");
        if let Some(daemon) = via {
            self.take_parked_claim(daemon);
        }
        self.notify_all();
    }

    fn new_job(&mut self, job: &Job) -> NewJob {
        let id = Id::stored(&format!("job-{}", self.ids.len()));
        self.ids.push(id.clone());
        let payload = Payload::parse("{}".into(), 10).expect("a payload");
        NewJob {
            id,
            job_type: job_type(TYPES[job.kind].name),
            payload,
            priority: job.priority,
            due: Due::In(job.delay),
            max_attempts: Some(job.max_attempts),
            timeout: None,
            key: None,
        }
    }

    /// Jobs that are added in the process of a daemon are claimed by what stands by there, in the same transaction.
    fn take_parked_claim(&mut self, daemon: usize) {
        let now = self.now;
        let Some(process) = &mut self.daemons[daemon] else { return };
        if process.frozen_until.is_some_and(|until| until > now) {
            return;
        }
        let Some((number, claim)) = process.parked.take() else { return };
        let claims = self.table.claim(&claim, self.timestamp());
        let delay = self.micros(20..5_000);
        let answer = Answer::Claim(number, self.instant(), Some(claims));
        self.schedule_in(daemon, delay, ProcessEvent::Answer(answer));
    }

    /// Everybody notices a change of the queue, a little later.
    fn notify_all(&mut self) {
        for daemon in 0..self.daemons.len() {
            if self.daemons[daemon].is_some() {
                let delay = self.micros(50..20_000);
                self.schedule_in(daemon, delay, ProcessEvent::Notice);
            }
        }
    }

    fn cancel(&mut self, nth: usize, retry: bool) {
        let Some(id) = self.ids.iter().rev().nth(nth).cloned() else { return };
        let now = self.timestamp();
        self.table.cancel(&id, now);
        if retry {
            self.table.retry(&id, &self.policies, now);
        }
        self.notify_all();
    }

    fn start(&mut self, daemon: usize) {
        self.lives[daemon] += 1;
        let name = format!("daemon-{daemon}-{}", self.lives[daemon]);
        let (slots, wall, now) = (self.script.slots[daemon], self.system_time(), self.instant());
        self.trace(|| format!("{name} starts"));
        let mut process = Daemon::new(name, self.script, slots, wall, now);
        process.busy_since = self.now;
        self.daemons[daemon] = Some(process);
        self.schedule_in(daemon, Duration::ZERO, ProcessEvent::Wake);
        self.call(daemon, Call::Rescue(false));
    }

    fn kill(&mut self, daemon: usize, down: Duration) {
        let Some(process) = self.daemons[daemon].take() else { return };
        self.lives[daemon] += 1;
        self.dead_workers.insert(process.name, process.notes);
        self.schedule(self.now + down, WorldEvent::Restart(daemon));
    }

    fn stop(&mut self, daemon: usize, grace: Duration, down: Duration) {
        let (now, since) = (self.instant(), self.now);
        let Some(process) = &mut self.daemons[daemon] else { return };
        if process.stopping.is_some() || process.frozen_until.is_some_and(|until| until > since) {
            return;
        }
        let machine = Shutdown::begin(grace, now);
        process.stopping = Some(Stopping { machine, since, grace, down, has_closed: false });
        process.dispatch.take(Event::Stop, now);
        self.act(daemon);
        self.schedule_in(daemon, grace, ProcessEvent::StopTick);
    }

    fn serve(&mut self, daemon: usize, kind: usize, is_served: bool) {
        let now = self.instant();
        let Some(process) = &mut self.daemons[daemon] else { return };
        let name = job_type(TYPES[kind].name);
        match is_served {
            true => _ = process.capacity.types.insert(name, TYPES[kind].limit.unwrap_or(process.capacity.slots)),
            false => _ = process.capacity.types.remove(&name),
        }
        process.dispatch.take(Event::Capacity(process.capacity.clone()), now);
        process.busy_since = self.now;
        self.act(daemon);
    }

    fn resize(&mut self, daemon: usize, slots: usize) {
        let now = self.instant();
        let Some(process) = &mut self.daemons[daemon] else { return };
        process.capacity.slots = slots;
        process.dispatch.take(Event::Capacity(process.capacity.clone()), now);
        self.act(daemon);
    }

    // Within a process.

    fn process_event(&mut self, daemon: usize, own: ProcessEvent) -> Check {
        let now = self.instant();
        let Some(process) = &mut self.daemons[daemon] else { return Ok(()) };
        match own {
            ProcessEvent::Notice => process.dispatch.take(Event::Changed, now),
            ProcessEvent::Wake => process.next_wake = None,
            ProcessEvent::Beat => self.beat(daemon),
            ProcessEvent::Call(asked, call) => return self.execute(daemon, asked, call),
            ProcessEvent::Answer(answer) => return self.answered(daemon, answer),
            ProcessEvent::FirstPoll(job) => self.start_attempt(daemon, *job)?,
            ProcessEvent::GuestEnds(key) => self.guest_ends(daemon, key, None),
            ProcessEvent::StopGuest(key) => self.stop_guest(daemon, key),
            ProcessEvent::StopTick => return self.stop_event(daemon, StopEvent::Tick),
        }
        self.act(daemon);
        self.stop_if_ended(daemon)
    }

    fn act(&mut self, daemon: usize) {
        let now = self.instant();
        loop {
            let Some(process) = &mut self.daemons[daemon] else { return };
            let mut actions = std::mem::take(&mut process.actions);
            process.dispatch.act(now, &mut actions);
            let is_done = actions.is_empty();
            for action in actions.drain(..) {
                self.perform(daemon, action);
            }
            let Some(process) = &mut self.daemons[daemon] else { return };
            process.actions = actions;
            if is_done {
                break;
            }
        }
        self.arm(daemon);
    }

    /// Sees to it that the dispatcher wakes when it wants to.
    fn arm(&mut self, daemon: usize) {
        let (now, base) = (self.instant(), self.base);
        let Some(process) = &mut self.daemons[daemon] else { return };
        let Some(wake_at) = process.dispatch.wake_at(now) else { return };
        let wake_at = (wake_at.max(now) - base) + Duration::from_micros(1);
        if process.next_wake.is_none_or(|next| wake_at < next) {
            process.next_wake = Some(wake_at);
            self.schedule_in(daemon, wake_at - self.now, ProcessEvent::Wake);
        }
    }

    fn perform(&mut self, daemon: usize, action: Action) {
        let now = self.instant();
        let Some(process) = &mut self.daemons[daemon] else { return };
        match action {
            Action::Claim(number, claim) => self.call(daemon, Call::Claim(number, claim)),
            Action::Park(number, claim) => process.parked = Some((number, claim)),
            Action::Withdraw(number) => {
                if process.parked.take().is_some() {
                    process.dispatch.take(Event::Withdrawn(number), now);
                }
            }
            Action::Start(job) => {
                process.open += 1;
                process.busy_since = self.now;
                process.unpolled.insert(key(&job.lease), kind_of(&job));
                // Now and then the runtime is held up.
                let held_up = self.rng.u8(0..100) == 0;
                let delay = self.micros(if held_up { 1..2_500_000 } else { 1..300 });
                self.schedule_in(daemon, delay, ProcessEvent::FirstPoll(Box::new(job)));
            }
            Action::Release(leases) => {
                process.open += 1;
                self.call(daemon, Call::Release(leases));
            }
        }
    }

    fn start_attempt(&mut self, daemon: usize, job: Claimed) -> Check {
        let now = self.instant();
        let key = key(&job.lease);
        let kind = kind_of(&job);
        let Some(process) = &mut self.daemons[daemon] else { return Ok(()) };
        process.unpolled.remove(&key);
        match process.leases.start(&job.lease, &key, now) {
            Start::Go => {}
            Start::Lost => {
                process.open -= 1;
                process.leases.remove(&job.lease);
                process.dispatch.take(Event::NotStarted(job.job_type), now);
                return Ok(());
            }
            Start::TooLate => {
                process.dispatch.take(Event::NotStarted(job.job_type), now);
                self.call(daemon, Call::Release(vec![job.lease]));
                return Ok(());
            }
        }
        if process.promises.get(&key).is_none_or(|until| *until <= now) {
            return Err(format!("I3: the guest of {} starts on a lease that has run out", job.id));
        }
        process.notes.insert(key);
        self.started.insert(key);
        if process.stopping.as_ref().is_some_and(|stopping| stopping.has_closed) {
            return Err("I13: a guest starts after all guests were stopped".into());
        }
        process.guests.insert(key, Guest { job, kind, started: now, is_stopped: false });
        let (running, slots) = (process.guests.len(), process.capacity.slots.max(self.script.slots[daemon]).max(6));
        if running > slots {
            return Err(format!("slots: {running} guests run in {slots} slots"));
        }
        let (running, limit) = (process.running_of(kind), TYPES[kind].limit.unwrap_or(usize::MAX));
        if running > limit {
            return Err(format!("slots: {running} guests of `{}` run, {limit} may", TYPES[kind].name));
        }
        let duration = match self.chance(key) {
            97.. => TIMEOUT,
            _ => self.micros(TYPES[kind].micros.clone()),
        };
        self.schedule_in(daemon, duration, ProcessEvent::GuestEnds(key));
        Ok(())
    }

    /// A number from 0 to 99 that belongs to an attempt of this seed, whatever else process_event.
    fn chance(&self, (job, token): Key) -> u32 {
        let mix = (job.seq() as u64) << 20 | token as u64;
        Rng::with_seed(self.script.seed ^ mix.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u32(0..100)
    }

    fn guest_ends(&mut self, daemon: usize, key: Key, end: Option<End>) {
        let (now, chance) = (self.instant(), self.chance(key));
        let Some(process) = &mut self.daemons[daemon] else { return };
        let Some(Guest { job, started, .. }) = process.guests.remove(&key) else { return };
        let end = end.unwrap_or_else(|| match chance {
            0..75 => End::Completed(String::new()),
            75..87 => End::Failed { message: String::new(), after: None },
            87..89 => End::Fatal(String::new()),
            89..93 => End::Snoozed(Duration::from_millis(100)),
            93..97 => End::Trapped(String::new()),
            _ => End::TimedOut(String::new()),
        });
        process.dispatch.take(Event::Ended { job_type: job.job_type.clone(), took: now - started }, now);
        let verdict = decide(end, job.attempt, job.max_attempts, &self.type_options, 0.5);
        self.call(daemon, Call::End(Box::new(job), verdict));
    }

    fn stop_guest(&mut self, daemon: usize, key: Key) {
        let Some(process) = &mut self.daemons[daemon] else { return };
        let Some(guest) = process.guests.get_mut(&key) else { return };
        if !std::mem::replace(&mut guest.is_stopped, true) {
            self.guest_ends(daemon, key, Some(End::Stopped));
        }
    }

    fn stop_soon(&mut self, daemon: usize, key: Key, after: Duration) {
        let delay = after + self.micros(1..10_000);
        self.schedule_in(daemon, delay, ProcessEvent::StopGuest(key));
    }

    fn beat(&mut self, daemon: usize) {
        let (wall, now) = (self.system_time(), self.instant());
        let Some(process) = &mut self.daemons[daemon] else { return };
        let beat = process.heartbeat.beat(wall, now);
        if beat.jump.is_some() {
            process.dispatch.take(Event::Changed, now);
        }
        let leases = process.leases.all();
        if leases.is_empty() {
            if beat.renew {
                process.heartbeat.renewed(now);
            }
            self.after_check(daemon);
        } else {
            self.call(daemon, if beat.renew { Call::Renew(leases) } else { Call::StaleLease(leases) });
        }
    }

    fn stop_event(&mut self, daemon: usize, event: StopEvent) -> Check {
        let now = self.instant();
        let Some(process) = &mut self.daemons[daemon] else { return Ok(()) };
        let Some(stopping) = &mut process.stopping else { return Ok(()) };
        match stopping.machine.on(event, now) {
            StopAction::Wait => Ok(()),
            StopAction::StopGuests => {
                stopping.has_closed = true;
                let wake_at = stopping.machine.wake_at().unwrap_or(now);
                let guests = process.leases.close();
                for key in guests {
                    self.stop_soon(daemon, key, Duration::ZERO);
                }
                self.schedule_in(daemon, wake_at - now, ProcessEvent::StopTick);
                Ok(())
            }
            StopAction::Leave => self.leave(daemon),
        }
    }

    fn stop_if_ended(&mut self, daemon: usize) -> Check {
        let Some(process) = &self.daemons[daemon] else { return Ok(()) };
        if process.stopping.is_some() && process.open == 0 && process.dispatch.is_wound_down() {
            return self.stop_event(daemon, StopEvent::AllEnded);
        }
        Ok(())
    }

    /// The process ends in an orderly way.
    fn leave(&mut self, daemon: usize) -> Check {
        let Some(process) = self.daemons[daemon].take() else { return Ok(()) };
        let Some(stopping) = process.stopping else { return Ok(()) };
        self.lives[daemon] += 1;
        self.schedule(self.now + stopping.down, WorldEvent::Restart(daemon));
        let took = self.now - stopping.since;
        let was_frozen = process.frozen_until.is_some_and(|until| until > stopping.since);
        if took > stopping.grace + Duration::from_secs(1) && !was_frozen {
            return Err(format!("I13: a stop with a grace of {:?} took {took:?}", stopping.grace));
        }
        let is_left =
            |job: &&queue::Job| job.status == Status::Running && job.worker.as_deref() == Some(process.name.as_str());
        let left = self.table.jobs().filter(is_left).count();
        let had_trouble = self.trouble_until + RECOVERY > stopping.since || was_frozen;
        if left > 0 && !had_trouble {
            return Err(format!("I13: {} left {} jobs running", process.name, left));
        }
        if left > 0 {
            self.dead_workers.insert(process.name, process.notes);
        }
        Ok(())
    }

    // The store.

    fn call(&mut self, daemon: usize, call: Call) {
        let (asked, delay) = (self.instant(), self.micros(10..4_000));
        self.schedule_in(daemon, delay, ProcessEvent::Call(asked, call));
    }

    /// Runs a call as one transaction, unless the store is in trouble.
    fn execute(&mut self, daemon: usize, asked: Instant, call: Call) -> Check {
        if self.locked_until > self.now {
            self.schedule(
                self.locked_until,
                WorldEvent::Of(daemon, self.lives[daemon], ProcessEvent::Call(asked, call)),
            );
            return Ok(());
        }
        let fails = self.failing_until > self.now;
        let is_lost = self.losing_until > self.now && self.rng.bool();
        let (answer, wrote) = self.transact(asked, call, !fails, !fails && !is_lost)?;
        if wrote {
            self.notify_all();
        }
        let delay = self.micros(10..4_000);
        self.schedule_in(daemon, delay, ProcessEvent::Answer(answer));
        Ok(())
    }

    /// WorldEvent a call does, where it `runs`, and what its caller hears, where that is `heard`; and whether others notice.
    fn transact(&mut self, asked: Instant, call: Call, runs: bool, heard: bool) -> Result<(Answer, bool), String> {
        let now = self.timestamp();
        Ok(match call {
            Call::Claim(number, claim) => {
                let claims = runs.then(|| self.table.claim(&claim, now));
                let wrote = claims.as_ref().is_some_and(|claims| !claims.jobs.is_empty());
                if let Some(claims) = &claims {
                    self.check_claim(&claim, claims)?;
                }
                if !heard {
                    self.orphans.extend(claims.iter().flat_map(|claims| &claims.jobs).map(|job| job.id.clone()));
                }
                (Answer::Claim(number, asked, claims.filter(|_| heard)), wrote)
            }
            Call::Renew(leases) => {
                let stale = runs.then(|| self.table.renew(&leases, LEASE, now));
                (Answer::Renew(asked, leases, stale.filter(|_| heard)), false)
            }
            Call::StaleLease(leases) => {
                (Answer::StaleLease(runs.then(|| self.table.stale(&leases)).filter(|_| heard)), false)
            }
            Call::Rescue(rescues_expired) => {
                let rescued = if runs { self.rescue(rescues_expired, asked)? } else { Vec::new() };
                (Answer::Rescue(heard.then_some(rescued.len())), !rescued.is_empty())
            }
            Call::End(job, verdict) => {
                if runs {
                    self.end(&job, &verdict, now);
                }
                // A job that is completed makes no work, so nobody needs to be told.
                let makes_work = !matches!(verdict, Verdict::Complete(_));
                (Answer::End(job, verdict, heard), runs && makes_work)
            }
            Call::Release(leases) => {
                if runs {
                    self.table.release(&leases);
                }
                (Answer::Release(leases, heard), runs)
            }
        })
    }

    fn end(&mut self, job: &Claimed, verdict: &Verdict, now: Timestamp) -> AttemptWrite {
        let receipt = Receipt::of(job, Duration::ZERO);
        match verdict {
            Verdict::Complete(result) => {
                self.table.complete(receipt, result.clone(), Vec::new(), now).expect("no follow-up is refused")
            }
            Verdict::Fail(failure) => self.table.fail(receipt, failure.clone(), now),
            Verdict::Snooze(delay) => self.table.snooze(receipt, *delay, now),
            Verdict::GiveBack => self.table.give_back(receipt, now),
        }
    }

    /// Ends the attempts of the dead, whose start notes are at hand, and those with leases that are over.
    fn rescue(&mut self, rescues_expired: bool, asked: Instant) -> Result<Vec<Rescued>, String> {
        let now = self.timestamp();
        let dead: Vec<WorkerName> = self.dead_workers.keys().cloned().collect();
        let dead_workers = &self.dead_workers;
        let living: BTreeMap<&WorkerName, &BTreeSet<Key>> =
            self.daemons.iter().flatten().map(|process| (&process.name, &process.notes)).collect();
        let has_started = |lease: &Lease| {
            let notes = dead_workers.get(&lease.worker).or_else(|| living.get(&lease.worker).copied());
            notes.is_none_or(|notes| notes.contains(&key(lease)))
        };
        let gone = LostAttempts {
            dead: &dead,
            max_lease: rescues_expired.then_some(LEASE * reaper::MAX_LEASE_FACTOR),
            limit: usize::MAX,
        };
        let rescued = self.table.rescue(&self.policies, gone, has_started, || 0.5, now);
        for job in &rescued {
            let Some(row) = self.table.find(&job.id) else { continue };
            let had_started = self.started.contains(&(row.reference, row.lease));
            if had_started != (job.status != Status::Pending) {
                return Err(format!(
                    "I15: {} was rescued as {}; had its guest started: {had_started}",
                    job.id, job.status
                ));
            }
            self.check_rescued(job, asked)?;
        }
        self.dead_workers.clear();
        Ok(rescued)
    }

    fn answered(&mut self, daemon: usize, answer: Answer) -> Check {
        let now = self.instant();
        let Some(process) = &mut self.daemons[daemon] else { return Ok(()) };
        match answer {
            Answer::Claim(number, asked, claims) => {
                let mut earlier = Vec::new();
                for job in claims.iter().flat_map(|claims| &claims.jobs) {
                    earlier.extend(process.leases.add(&job.lease, asked, LEASE));
                    process.promises.insert(key(&job.lease), asked + LEASE);
                }
                process.dispatch.take(Event::Claimed(number, claims), now);
                for key in earlier {
                    self.stop_soon(daemon, key, Duration::ZERO);
                }
            }
            Answer::Renew(asked, leases, stale) => {
                if stale.is_none() {
                    process.heartbeat.failed(now);
                }
                if let Some(stale) = stale {
                    process.heartbeat.renewed(asked);
                    process.leases.renewed(&leases, asked, LEASE);
                    process.promises.extend(leases.iter().map(|lease| (key(lease), asked + LEASE)));
                    self.stale(daemon, stale);
                }
                self.after_check(daemon);
            }
            Answer::StaleLease(stale) => {
                if stale.is_none() {
                    process.heartbeat.failed(now);
                }
                self.stale(daemon, stale.unwrap_or_default());
                self.after_check(daemon);
            }
            Answer::Rescue(count) => {
                match count {
                    None => process.heartbeat.failed(now),
                    Some(0) => {}
                    Some(_) => process.dispatch.take(Event::Changed, now),
                }
                self.next_beat(daemon);
            }
            Answer::End(job, verdict, true) => {
                process.open -= 1;
                process.leases.remove(&job.lease);
                drop(verdict);
            }
            Answer::End(job, verdict, false) => {
                let asked = now;
                self.schedule_in(daemon, Duration::from_millis(50), ProcessEvent::Call(asked, Call::End(job, verdict)));
            }
            Answer::Release(leases, true) => {
                process.open -= 1;
                leases.iter().for_each(|lease| process.leases.remove(lease));
            }
            Answer::Release(leases, false) => {
                self.schedule_in(daemon, Duration::from_millis(100), ProcessEvent::Call(now, Call::Release(leases)));
            }
        }
        self.act(daemon);
        self.stop_if_ended(daemon)
    }

    fn stale(&mut self, daemon: usize, stale: Vec<StaleLease>) {
        for StaleLease { lease, cancelled } in stale {
            let Some(process) = &mut self.daemons[daemon] else { return };
            if let Some(key) = process.leases.lost(&lease) {
                self.stop_soon(daemon, key, if cancelled { GRACE_AFTER_CANCEL } else { Duration::ZERO });
            }
        }
    }

    fn after_check(&mut self, daemon: usize) {
        let (wall, now) = (self.system_time(), self.instant());
        if let Some(process) = &self.daemons[daemon] {
            let rescues_expired = process.heartbeat.may_rescue_expired(wall, now);
            self.call(daemon, Call::Rescue(rescues_expired));
        }
    }

    fn next_beat(&mut self, daemon: usize) {
        if let Some(process) = &self.daemons[daemon] {
            let pause = process.heartbeat.pause();
            self.schedule_in(daemon, pause, ProcessEvent::Beat);
        }
    }
}

fn kind_of(job: &Claimed) -> usize {
    TYPES.iter().position(|kind| kind.name == job.job_type.as_str()).unwrap_or(0)
}
