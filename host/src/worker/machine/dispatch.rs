//! What to claim, what to start, what to give back.
//!
//! A slot is taken before a job is claimed for it. What is known of each type decides when to claim: a type of which the
//! last claim took all there was is claimed again when the queue has changed, when its next job comes due, or at the
//! regular look; one of which there may be more, as soon as there is room for it. So a slot that becomes free is used at
//! once, whatever else is served (I14).

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::prefetch::Prefetch;
use crate::queue::{Claim, Claimed, Claims, JobType, Lease, Want, WorkerName};

/// A job that was claimed ahead and has not started by then is given back, so that another daemon may run it.
pub(in crate::worker) const PATIENCE: Duration = Duration::from_millis(100);

/// How long to wait after a claim that failed, at first and at most.
const RETRY_CLAIM: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// What a pool may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::worker) struct Capacity {
    /// Attempts at once.
    pub(in crate::worker) slots: usize,
    /// The types that can be served, and how many slots each may hold.
    pub(in crate::worker) types: BTreeMap<JobType, usize>,
    /// How long leases hold.
    pub(in crate::worker) lease: Duration,
    /// The shortest and the longest pause between two claims that find nothing.
    pub(in crate::worker) poll: (Duration, Duration),
}

/// What happens to the pool.
#[derive(Debug)]
pub(in crate::worker) enum Event {
    /// The claim with this number was answered; `None` when it failed.
    Claimed(u64, Option<Claims>),
    /// The claim with this number, which stood by, was withdrawn before anybody took it.
    Withdrawn(u64),
    /// A guest has ended; its slot is free.
    Ended { job_type: JobType, took: Duration },
    /// A job that was given a slot did not start; its slot is free.
    NotStarted(JobType),
    /// Somebody has written to the queue.
    Changed,
    /// Settings or plugins have changed.
    Capacity(Capacity),
    /// Nothing more shall be claimed or started.
    Stop,
}

/// What the loop has to do.
#[derive(Clone, Debug)]
pub(in crate::worker) enum Action {
    /// Ask the store, and report [`Event::Claimed`].
    Claim(u64, Claim),
    /// Leave the claim with the store for jobs that this process adds, and report [`Event::Claimed`] if it is taken.
    Park(u64, Claim),
    /// Take back the claim that stands by, and report [`Event::Withdrawn`] if that was not too late.
    Withdraw(u64),
    /// Start a claimed job, and report [`Event::Ended`] or [`Event::NotStarted`].
    Start(Claimed),
    /// Give back what has not started.
    Release(Vec<Lease>),
}

/// The claim that is out; at most one.
#[derive(Debug)]
enum Pending {
    None,
    Asked { number: u64, claim: Claim, changes: u64 },
    Parked { number: u64, claim: Claim, changes: u64 },
    Withdrawing { number: u64, claim: Claim, changes: u64 },
}

/// What the last claim showed of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backlog {
    /// There may be due jobs.
    MayHaveDue,
    /// All due jobs were taken; the next comes due no earlier, unless the queue changes.
    NoneDueBefore(Instant),
}

/// One type: its jobs in slots, its jobs that wait for one, and what is known of the rest.
#[derive(Debug)]
struct TypeState {
    /// Slots it may hold; 0 when it cannot be served now.
    limit: usize,
    running: usize,
    ready: VecDeque<Ready>,
    backlog: Backlog,
}

impl TypeState {
    fn is_idle(&self) -> bool {
        self.limit == 0 && self.running == 0 && self.ready.is_empty()
    }
}

/// A claimed job that waits for a slot.
#[derive(Debug)]
struct Ready {
    job: Claimed,
    /// Its place among all that were claimed.
    place: u64,
    since: Instant,
}

/// The state machine: [`Dispatch::take`] what happens, then [`Dispatch::act`], at the latest at [`Dispatch::wake_at`].
#[derive(Debug)]
pub(in crate::worker) struct Dispatch {
    worker: WorkerName,
    capacity: Capacity,
    types: BTreeMap<JobType, TypeState>,
    ahead: Prefetch,
    running: usize,
    ready: usize,
    pending: Pending,
    /// Counts claims, to tell their answers apart.
    claims: u64,
    /// Counts claimed jobs.
    places: u64,
    /// Counts changes of the queue, to tell one that came while a claim was out.
    changes: u64,
    /// When to look although nothing has happened.
    next_poll: Instant,
    pause: Duration,
    /// After a claim that failed: no other one before this.
    retry_at: Option<Instant>,
    retry_pause: Duration,
    is_stopping: bool,
}

impl Dispatch {
    /// A pool that has claimed nothing yet; the first event makes it claim. `cores`: how many guests can compute at once.
    pub(in crate::worker) fn new(worker: WorkerName, capacity: Capacity, cores: usize, now: Instant) -> Self {
        let mut dispatch = Self {
            worker,
            pause: capacity.poll.0,
            capacity: Capacity { types: BTreeMap::new(), ..capacity.clone() },
            types: BTreeMap::new(),
            ahead: Prefetch::new(cores),
            running: 0,
            ready: 0,
            pending: Pending::None,
            claims: 0,
            places: 0,
            changes: 0,
            next_poll: now,
            retry_at: None,
            retry_pause: RETRY_CLAIM.0,
            is_stopping: false,
        };
        dispatch.take_capacity(capacity);
        dispatch
    }

    /// Takes note of what has happened. What follows from it, and from others that came with it, is [`Dispatch::act`]'s.
    pub(in crate::worker) fn take(&mut self, event: Event, now: Instant) {
        match event {
            Event::Claimed(number, answer) => self.claimed(number, answer, now),
            Event::Withdrawn(number) => self.withdrawn(number),
            Event::Ended { job_type, took } => {
                self.ahead.measured(&job_type, took);
                self.slot_freed(&job_type);
            }
            Event::NotStarted(job_type) => self.slot_freed(&job_type),
            Event::Changed => self.changed(),
            Event::Capacity(capacity) => self.take_capacity(capacity),
            Event::Stop => self.is_stopping = true,
        }
    }

    /// Decides at `now` what is to be done, and adds it to `actions`.
    pub(in crate::worker) fn act(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.is_stopping {
            self.wind_down(actions);
            return;
        }
        if now >= self.next_poll {
            self.look(now);
        }
        self.start_ready(actions);
        self.release_overdue(now, actions);
        self.claim(now, actions);
    }

    /// When to act although nothing happens; `None` after a stop.
    pub(in crate::worker) fn wake_at(&self, now: Instant) -> Option<Instant> {
        if self.is_stopping {
            return None;
        }
        let overdue = self.types.values().filter_map(|state| Some(state.ready.front()?.since + PATIENCE));
        let due = self.types.values().filter_map(|state| match state.backlog {
            Backlog::NoneDueBefore(instant) if state.limit > 0 && instant > now => Some(instant),
            _ => None,
        });
        let retry = self.retry_at.into_iter();
        overdue.chain(due).chain(retry).chain([self.next_poll]).min()
    }

    /// After a stop: whether nothing is out that could still bring jobs.
    pub(in crate::worker) fn is_wound_down(&self) -> bool {
        self.is_stopping && matches!(self.pending, Pending::None)
    }

    fn claimed(&mut self, number: u64, answer: Option<Claims>, now: Instant) {
        let (claim, changes) = match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::Asked { number: asked, claim, changes }
            | Pending::Parked { number: asked, claim, changes }
            | Pending::Withdrawing { number: asked, claim, changes }
                if asked == number =>
            {
                (claim, changes)
            }
            other => {
                self.pending = other;
                return;
            }
        };
        let Some(claims) = answer else {
            self.retry_at = Some(now + self.retry_pause);
            self.retry_pause = (self.retry_pause * 2).min(RETRY_CLAIM.1);
            return;
        };
        self.retry_at = None;
        self.retry_pause = RETRY_CLAIM.0;
        self.learn(&claim, &claims, changes == self.changes, now);
        for job in claims.jobs {
            self.places += 1;
            self.ready += 1;
            let place = self.places;
            self.state(&job.job_type.clone()).ready.push_back(Ready { job, place, since: now });
        }
    }

    /// Draws the conclusions from an answer. What came in while the claim was out may not be in it.
    fn learn(&mut self, claim: &Claim, claims: &Claims, is_current: bool, now: Instant) {
        let (shortest, longest) = self.capacity.poll;
        if !claims.jobs.is_empty() {
            self.pause = shortest;
            self.next_poll = self.next_poll.min(now + shortest);
        }
        if !is_current {
            return;
        }
        let are_slots_used_up = claims.jobs.len() >= claim.slots;
        // Far enough that the regular look comes first.
        let next_due = now + claims.next_due.unwrap_or(longest * 2);
        for want in &claim.wants {
            let taken = claims.jobs.iter().filter(|job| job.job_type == want.job_type).count();
            let is_cut_short = taken >= want.slots + want.ahead || (are_slots_used_up && taken >= want.ahead);
            let backlog = if is_cut_short { Backlog::MayHaveDue } else { Backlog::NoneDueBefore(next_due) };
            self.state(&want.job_type).backlog = backlog;
        }
    }

    fn withdrawn(&mut self, number: u64) {
        if matches!(self.pending, Pending::Withdrawing { number: asked, .. } if asked == number) {
            self.pending = Pending::None;
        }
    }

    fn slot_freed(&mut self, job_type: &JobType) {
        self.running -= 1;
        self.state(job_type).running -= 1;
        self.forget_if_idle(job_type);
    }

    fn changed(&mut self) {
        self.changes += 1;
        self.types.values_mut().for_each(|state| state.backlog = Backlog::MayHaveDue);
    }

    /// The net under all notices of changes; its pauses double while nothing is claimed.
    fn look(&mut self, now: Instant) {
        let (shortest, longest) = self.capacity.poll;
        self.changed();
        self.next_poll = now + self.pause;
        self.pause = (self.pause * 2).clamp(shortest, longest.max(shortest));
    }

    fn take_capacity(&mut self, capacity: Capacity) {
        self.types.values_mut().for_each(|state| state.limit = 0);
        for (job_type, limit) in &capacity.types {
            self.state(job_type).limit = *limit;
        }
        self.types.retain(|_, state| !state.is_idle());
        self.capacity = capacity;
        self.changed();
    }

    fn state(&mut self, job_type: &JobType) -> &mut TypeState {
        self.types.entry(job_type.clone()).or_insert_with(|| TypeState {
            limit: 0,
            running: 0,
            ready: VecDeque::new(),
            backlog: Backlog::MayHaveDue,
        })
    }

    fn forget_if_idle(&mut self, job_type: &JobType) {
        if self.types.get(job_type).is_some_and(TypeState::is_idle) {
            self.types.remove(job_type);
        }
    }

    /// Starts waiting jobs in the order of their claims, as long as there are slots; types at their limit are passed over.
    fn start_ready(&mut self, actions: &mut Vec<Action>) {
        while self.running < self.capacity.slots && self.ready > 0 {
            let startable = self.types.values_mut().filter(|state| state.running < state.limit);
            let first = startable.filter(|state| !state.ready.is_empty()).min_by_key(|state| state.ready[0].place);
            let Some(state) = first else { return };
            let Some(Ready { job, .. }) = state.ready.pop_front() else { return };
            state.running += 1;
            self.running += 1;
            self.ready -= 1;
            actions.push(Action::Start(job));
        }
    }

    /// Gives back what has waited too long: the slots are taken by something longer than was measured.
    fn release_overdue(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let mut leases = Vec::new();
        for (job_type, state) in &mut self.types {
            let first = leases.len();
            while let Some(ready) = state.ready.pop_front_if(|ready| now >= ready.since + PATIENCE) {
                leases.push(ready.job.lease);
            }
            if leases.len() > first {
                self.ahead.no_slot_in_time(job_type);
                state.backlog = Backlog::MayHaveDue;
            }
        }
        self.ready -= leases.len();
        if !leases.is_empty() {
            self.types.retain(|_, state| !state.is_idle());
            actions.push(Action::Release(leases));
        }
    }

    /// Claims what there may be room and jobs for; where nothing is to be found, leaves a claim for what will be added.
    fn claim(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if matches!(self.pending, Pending::Asked { .. } | Pending::Withdrawing { .. }) {
            return;
        }
        if self.retry_at.is_some_and(|retry_at| now < retry_at) {
            return;
        }
        self.retry_at = None;
        let promising = |state: &TypeState| match state.backlog {
            Backlog::MayHaveDue => true,
            Backlog::NoneDueBefore(instant) => now >= instant,
        };
        if let Some(claim) = self.wanted(promising) {
            match std::mem::replace(&mut self.pending, Pending::None) {
                Pending::Parked { number, claim, changes } => {
                    self.pending = Pending::Withdrawing { number, claim, changes };
                    actions.push(Action::Withdraw(number));
                }
                _ => {
                    let number = self.number();
                    self.pending = Pending::Asked { number, claim: claim.clone(), changes: self.changes };
                    actions.push(Action::Claim(number, claim));
                }
            }
        } else if matches!(self.pending, Pending::None)
            && self.free() > 0
            && let Some(claim) = self.wanted(|_| true)
        {
            let number = self.number();
            self.pending = Pending::Parked { number, claim: claim.clone(), changes: self.changes };
            actions.push(Action::Park(number, claim));
        }
    }

    fn number(&mut self) -> u64 {
        self.claims += 1;
        self.claims
    }

    /// Slots that are neither taken nor meant for a job that waits. One that waits for the limit of its type needs none.
    fn free(&self) -> usize {
        let reserved = |state: &TypeState| state.ready.len().min(state.limit.saturating_sub(state.running));
        let reserved: usize = self.types.values().map(reserved).sum();
        self.capacity.slots.saturating_sub(self.running + reserved)
    }

    /// A claim of all that can be taken now of the types that `is_asked` names; `None` when that is nothing.
    ///
    /// Few jobs ahead are not worth a claim of their own while enough are waiting.
    fn wanted(&self, is_asked: impl Fn(&TypeState) -> bool) -> Option<Claim> {
        let free = self.free();
        let asked = || self.types.iter().filter(|(_, state)| state.limit > 0 && is_asked(state));
        let sharers = asked().count();
        let wants: Vec<Want> = asked()
            .filter_map(|(job_type, state)| {
                let limit = state.limit.min(self.capacity.slots);
                let slots = free.min(limit.saturating_sub(state.running + state.ready.len()));
                let most_ahead = self.ahead.of(job_type, limit, sharers);
                let ahead = most_ahead.saturating_sub(state.ready.len());
                let ahead = if ahead >= most_ahead.div_ceil(2) { ahead } else { 0 };
                (slots + ahead > 0).then(|| Want { job_type: job_type.clone(), slots, ahead })
            })
            .collect();
        let (lease, worker) = (self.capacity.lease, self.worker.clone());
        (!wants.is_empty()).then_some(Claim { wants, slots: free, lease, worker })
    }

    /// Gives back what waits, and takes back the claim that stands by.
    fn wind_down(&mut self, actions: &mut Vec<Action>) {
        let ready = self.types.values_mut().flat_map(|state| state.ready.drain(..));
        let leases: Vec<Lease> = ready.map(|ready| ready.job.lease).collect();
        self.ready = 0;
        if !leases.is_empty() {
            actions.push(Action::Release(leases));
        }
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::Parked { number, claim, changes } => {
                self.pending = Pending::Withdrawing { number, claim, changes };
                actions.push(Action::Withdraw(number));
            }
            other => self.pending = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Id, JobRef};

    const POLL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
    const MS: Duration = Duration::from_millis(1);

    fn job_type(name: &str) -> JobType {
        JobType::parse(name).unwrap()
    }

    /// A pool of two slots; `types` with the slots each may hold.
    struct Pool {
        machine: Dispatch,
        now: Instant,
        jobs: i64,
    }

    impl Pool {
        fn new(types: &[(&str, usize)]) -> Self {
            let types = types.iter().map(|(name, limit)| (job_type(name), *limit)).collect();
            let capacity = Capacity { slots: 2, types, lease: Duration::from_secs(15), poll: POLL };
            let now = Instant::now();
            Self { machine: Dispatch::new(WorkerName::new("w"), capacity, 2, now), now, jobs: 0 }
        }

        fn act(&mut self) -> Vec<Action> {
            let mut actions = Vec::new();
            self.machine.act(self.now, &mut actions);
            actions
        }

        fn take(&mut self, event: Event) {
            self.machine.take(event, self.now);
        }

        /// Acts, and expects to claim and nothing else.
        fn claims(&mut self) -> (u64, Claim) {
            match &self.act()[..] {
                [Action::Claim(number, claim)] => (*number, claim.clone()),
                other => panic!("expected a claim, got {other:?}"),
            }
        }

        /// Answers a claim with `count` jobs of a type, and returns what follows.
        fn answer(&mut self, number: u64, name: &str, count: usize) -> Vec<Action> {
            let jobs = (0..count).map(|_| self.job(name)).collect();
            self.take(Event::Claimed(number, Some(Claims { jobs, next_due: None })));
            self.act()
        }

        fn job(&mut self, name: &str) -> Claimed {
            self.jobs += 1;
            let lease = Lease { job: JobRef::from_seq(self.jobs), token: 1, worker: WorkerName::new("w") };
            Claimed {
                lease,
                id: Id::generate(),
                job_type: job_type(name),
                payload: Ok("{}".into()),
                attempt: 1,
                max_attempts: None,
                timeout: None,
            }
        }

        fn end(&mut self, name: &str, took: Duration) {
            self.take(Event::Ended { job_type: job_type(name), took });
        }

        /// A pool that has measured its type `short` as short, and has nothing to do.
        fn idle(types: &[(&str, usize)]) -> Self {
            let mut pool = Self::new(types);
            let (number, _) = pool.claims();
            assert_eq!(started(&pool.answer(number, "short", 1)), 1);
            pool.end("short", Duration::from_micros(50));
            while !matches!(pool.machine.pending, Pending::Parked { .. }) {
                for action in pool.act() {
                    match action {
                        Action::Withdraw(number) => pool.take(Event::Withdrawn(number)),
                        Action::Claim(number, _) => {
                            pool.take(Event::Claimed(number, Some(Claims { jobs: vec![], next_due: None })));
                        }
                        Action::Park(..) => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            pool
        }

        /// A change of the queue makes it claim; returns that claim.
        fn changed(&mut self) -> (u64, Claim) {
            self.take(Event::Changed);
            for action in self.act() {
                match action {
                    Action::Withdraw(number) => self.take(Event::Withdrawn(number)),
                    Action::Claim(number, claim) => return (number, claim),
                    other => panic!("{other:?}"),
                }
            }
            self.claims()
        }
    }

    fn started(actions: &[Action]) -> usize {
        actions.iter().filter(|action| matches!(action, Action::Start(_))).count()
    }

    fn want<'c>(claim: &'c Claim, name: &str) -> Option<&'c Want> {
        claim.wants.iter().find(|want| want.job_type.as_str() == name)
    }

    #[test]
    fn a_freed_slot_is_claimed_for_at_once_though_another_type_is_short_and_idle() {
        let mut pool = Pool::idle(&[("short", 2), ("slow", 2)]);
        let (number, _) = pool.changed();
        let actions = pool.answer(number, "slow", 2);
        assert_eq!(started(&actions), 2);
        // The slots are full; what is claimed ahead of the short type finds nothing.
        if let Some(Action::Claim(number, claim)) = actions.last() {
            assert_eq!(want(claim, "slow"), None);
            pool.answer(*number, "short", 0);
        }
        pool.now += 100 * MS;
        pool.end("slow", 100 * MS);
        let (_, claim) = pool.claims();
        assert_eq!(want(&claim, "slow").map(|want| want.slots), Some(1));
    }

    #[test]
    fn a_pool_that_took_all_there_was_asks_again_when_the_queue_changes_and_not_before() {
        let mut pool = Pool::idle(&[("short", 2)]);
        assert!(pool.act().is_empty());
        pool.now += POLL.0 / 2;
        assert!(pool.act().is_empty());
        let (number, claim) = pool.changed();
        assert_eq!(claim.slots, 2);
        let actions = pool.answer(number, "short", 0);
        assert!(matches!(actions[..], [Action::Park(..)]), "{actions:?}");
    }

    #[test]
    fn a_change_that_comes_while_a_claim_is_out_is_looked_at() {
        let mut pool = Pool::idle(&[("short", 2)]);
        let (number, _) = pool.changed();
        pool.take(Event::Changed);
        let actions = pool.answer(number, "short", 0);
        assert!(matches!(actions[..], [Action::Claim(..)]), "{actions:?}");
    }

    #[test]
    fn the_next_due_job_is_claimed_when_it_comes_due() {
        let mut pool = Pool::idle(&[("short", 2)]);
        let (number, _) = pool.changed();
        pool.take(Event::Claimed(number, Some(Claims { jobs: vec![], next_due: Some(300 * MS) })));
        pool.act();
        assert_eq!(pool.machine.wake_at(pool.now), Some(pool.now + 300 * MS));
        pool.now += 300 * MS;
        let actions = pool.act();
        assert!(matches!(actions[..], [Action::Withdraw(_)]), "{actions:?}");
    }

    #[test]
    fn short_jobs_are_claimed_ahead_and_long_ones_never() {
        let mut pool = Pool::idle(&[("short", 2), ("slow", 2)]);
        let (_, claim) = pool.changed();
        assert!(want(&claim, "short").is_some_and(|want| want.ahead > 0));
        assert!(want(&claim, "slow").is_some_and(|want| want.ahead == 0 && want.slots == 2));
    }

    #[test]
    fn jobs_that_wait_for_the_limit_of_their_type_leave_the_slots_to_others() {
        let mut pool = Pool::idle(&[("short", 1), ("slow", 2)]);
        let (number, _) = pool.changed();
        let actions = pool.answer(number, "short", 20);
        assert_eq!(started(&actions), 1);
        let Some(Action::Claim(_, claim)) = actions.last() else { panic!("{actions:?}") };
        assert_eq!(want(claim, "slow").map(|want| want.slots), Some(1));
    }

    #[test]
    fn what_finds_no_slot_in_time_is_given_back() {
        let mut pool = Pool::idle(&[("short", 2)]);
        let (number, _) = pool.changed();
        pool.answer(number, "short", 10);
        assert!(pool.machine.wake_at(pool.now) <= Some(pool.now + PATIENCE));
        pool.now += PATIENCE;
        let actions = pool.act();
        let released = actions.iter().find_map(|action| match action {
            Action::Release(leases) => Some(leases.len()),
            _ => None,
        });
        assert_eq!(released, Some(8));
    }

    #[test]
    fn a_claim_that_fails_is_made_again_after_a_pause() {
        let mut pool = Pool::new(&[("short", 2)]);
        let (number, _) = pool.claims();
        pool.take(Event::Claimed(number, None));
        assert!(pool.act().is_empty());
        pool.now = pool.machine.wake_at(pool.now).unwrap();
        pool.claims();
    }

    #[test]
    fn a_type_that_is_served_no_longer_is_not_claimed() {
        let mut pool = Pool::idle(&[("short", 2), ("slow", 2)]);
        let types = BTreeMap::from([(job_type("slow"), 2)]);
        pool.take(Event::Capacity(Capacity { slots: 1, types, ..pool.machine.capacity.clone() }));
        let (_, claim) = pool.changed();
        assert_eq!((claim.slots, want(&claim, "short")), (1, None));
    }

    #[test]
    fn after_a_stop_nothing_starts_and_everything_is_given_back() {
        let mut pool = Pool::idle(&[("short", 2)]);
        let (number, _) = pool.changed();
        pool.answer(number, "short", 5);
        pool.take(Event::Stop);
        let actions = pool.act();
        assert!(matches!(&actions[..], [Action::Release(leases)] if leases.len() == 3), "{actions:?}");
        pool.end("short", MS);
        assert_eq!(started(&pool.act()), 0);
    }

    #[test]
    fn a_stop_waits_for_the_claim_that_is_out_and_gives_back_what_it_brings() {
        let mut pool = Pool::idle(&[("short", 2)]);
        let (number, _) = pool.changed();
        pool.take(Event::Stop);
        assert!(pool.act().is_empty() && !pool.machine.is_wound_down());
        let actions = pool.answer(number, "short", 3);
        assert!(matches!(&actions[..], [Action::Release(leases)] if leases.len() == 3), "{actions:?}");
        assert!(pool.machine.is_wound_down());
    }
}
