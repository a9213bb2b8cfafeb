//! One simulated daemon: the state machines of a pool and the state of its process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use super::script::{Script, TYPES};
use crate::queue::{Claim, Claimed, JobRef, JobType, Lease, WorkerName};
use crate::worker::machine::dispatch::{Action, Capacity, Dispatch, Event};
use crate::worker::machine::heartbeat::Heartbeat;
use crate::worker::machine::leases::Leases;
use crate::worker::machine::shutdown::Shutdown;

/// The length of leases.
pub(super) const LEASE: Duration = Duration::from_secs(3);

/// An attempt: its job and fencing token.
pub(super) type Key = (JobRef, i64);

/// A running guest.
pub(super) struct Guest {
    pub(super) job: Claimed,
    pub(super) kind: usize,
    pub(super) started: Instant,
    pub(super) is_stopped: bool,
}

/// A process.
pub(super) struct Daemon {
    pub(super) name: WorkerName,
    pub(super) capacity: Capacity,
    pub(super) dispatch: Dispatch,
    pub(super) leases: Leases<Key>,
    pub(super) heartbeat: Heartbeat,
    pub(super) guests: BTreeMap<Key, Guest>,
    /// The types of attempts that were spawned but have not run yet.
    pub(super) unpolled: BTreeMap<Key, usize>,
    /// The parked claim.
    pub(super) parked: Option<(u64, Claim)>,
    /// The number of spawned attempts that have not ended.
    pub(super) open: usize,
    /// Until when each lease is valid at least.
    pub(super) promises: BTreeMap<Key, Instant>,
    /// Guests that started: the start notes in the worker's file.
    pub(super) notes: BTreeSet<Key>,
    pub(super) stopping: Option<Stopping>,
    pub(super) started_at: Duration,
    pub(super) frozen_until: Option<Duration>,
    pub(super) next_wake: Option<Duration>,
    /// When the next heartbeat begins. A scheduled heartbeat at another time has been replaced.
    pub(super) next_beat: Option<Duration>,
    pub(super) actions: Vec<Action>,
    /// Whether an event has reached the dispatcher since it last acted.
    pub(super) must_act: bool,
    /// The last time that it started a job, or could not start any.
    pub(super) busy_since: Duration,
}

/// A shutdown in progress.
pub(super) struct Stopping {
    pub(super) machine: Shutdown,
    pub(super) since: Duration,
    pub(super) grace: Duration,
    pub(super) down: Duration,
    pub(super) has_closed: bool,
}

impl Daemon {
    pub(super) fn new(name: String, script: &Script, slots: usize, wall: SystemTime, now: Instant) -> Self {
        let name = WorkerName::new(name);
        let types = TYPES.iter().map(|kind| (job_type(kind.name), kind.limit.unwrap_or(slots))).collect();
        let capacity = Capacity { slots, types, lease: LEASE, poll: script.poll };
        Self {
            dispatch: Dispatch::new(name.clone(), capacity.clone(), 2, now),
            name,
            capacity,
            leases: Leases::default(),
            heartbeat: Heartbeat::new(LEASE, wall, now),
            guests: BTreeMap::new(),
            unpolled: BTreeMap::new(),
            parked: None,
            open: 0,
            promises: BTreeMap::new(),
            notes: BTreeSet::new(),
            stopping: None,
            started_at: Duration::ZERO,
            frozen_until: None,
            next_wake: None,
            next_beat: None,
            actions: Vec::new(),
            must_act: true,
            busy_since: Duration::ZERO,
        }
    }

    /// Passes an event to the dispatcher.
    pub(super) fn take(&mut self, event: Event, now: Instant) {
        self.dispatch.take(event, now);
        self.must_act = true;
    }

    pub(super) fn running_of(&self, kind: usize) -> usize {
        self.guests.values().filter(|guest| guest.kind == kind).count()
    }

    /// Slots used by a type, by running guests or attempts that are about to start one.
    pub(super) fn taken_by(&self, kind: usize) -> usize {
        self.running_of(kind) + self.unpolled.values().filter(|other| **other == kind).count()
    }
}

pub(super) fn job_type(name: &str) -> JobType {
    JobType::parse(name).expect("a valid type")
}

pub(super) fn key(lease: &Lease) -> Key {
    (lease.job, lease.token)
}
