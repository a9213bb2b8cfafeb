//! One daemon of a history: the machines of a pool, and what its process would know.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use super::script::{Script, TYPES};
use crate::queue::{Claim, Claimed, JobRef, JobType, Lease, WorkerName};
use crate::worker::machine::dispatch::{Action, Capacity, Dispatch};
use crate::worker::machine::heartbeat::Heartbeat;
use crate::worker::machine::leases::Leases;
use crate::worker::machine::shutdown::Shutdown;

/// How long leases hold in every history.
pub(super) const LEASE: Duration = Duration::from_secs(3);

/// A job's attempt.
pub(super) type Key = (JobRef, i64);

/// A guest that runs.
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
    /// The types of attempts that were spawned and not polled yet.
    pub(super) unpolled: BTreeMap<Key, usize>,
    /// The claim that stands by, and since when it can have been taken.
    pub(super) parked: Option<(u64, Claim)>,
    /// Attempts that were spawned and have not come to their end.
    pub(super) open: usize,
    /// Until when each lease was promised to hold.
    pub(super) promises: BTreeMap<Key, Instant>,
    /// Guests that started: what a worker's file tells after its death.
    pub(super) notes: BTreeSet<Key>,
    pub(super) stopping: Option<Stopping>,
    pub(super) frozen_until: Option<Duration>,
    pub(super) next_wake: Option<Duration>,
    pub(super) actions: Vec<Action>,
    /// The last time it started something, or could not have.
    pub(super) busy_since: Duration,
}

/// An orderly stop under way.
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
            frozen_until: None,
            next_wake: None,
            actions: Vec::new(),
            busy_since: Duration::ZERO,
        }
    }

    pub(super) fn running_of(&self, kind: usize) -> usize {
        self.guests.values().filter(|guest| guest.kind == kind).count()
    }

    /// Slots of a type that are taken, by guests or by attempts that are about to start one.
    pub(super) fn taken_by(&self, kind: usize) -> usize {
        self.running_of(kind) + self.unpolled.values().filter(|other| **other == kind).count()
    }
}

pub(super) fn job_type(name: &str) -> JobType {
    JobType::parse(name).expect("a name of a type")
}

pub(super) fn key(lease: &Lease) -> Key {
    (lease.job, lease.token)
}
