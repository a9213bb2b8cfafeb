//! The leases this pool holds, from the claim until the outcome of the attempt is recorded.
//!
//! A guest starts only while its lease is valid by this process's monotonic clock (I3), and not at all after the pool has
//! stopped its guests (I13).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::queue::{JobRef, Lease};

/// All leases and the guests that run under them. `G` is a handle to a running guest.
#[derive(Debug)]
pub(in crate::worker) struct Leases<G> {
    held: BTreeMap<(JobRef, i64), Held<G>>,
    is_closed: bool,
}

#[derive(Debug)]
struct Held<G> {
    lease: Lease,
    /// Until when it is valid at least, by this process's clock.
    until: Instant,
    state: LeaseState<G>,
}

#[derive(Debug)]
enum LeaseState<G> {
    /// The guest has not started.
    Ready,
    /// The guest runs, or it has ended and its outcome is being recorded.
    Running(G),
    /// The guest has not started and must not: the lease is no longer valid.
    Stale,
}

/// Whether a guest may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Start {
    /// Yes. It counts as running from now on.
    Go,
    /// No: the lease was taken over or the job cancelled. There is nothing to give back.
    Lost,
    /// No: the lease expired or the pool has stopped its guests. The job must be given back.
    TooLate,
}

impl<G> Default for Leases<G> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), is_closed: false }
    }
}

impl<G: Clone> Leases<G> {
    /// Adds a lease that is valid for `length` from `asked`, the instant of the claim. Returns the guest of an earlier attempt
    /// of the same job that still runs here: the job was cancelled and retried, so that guest must be stopped.
    pub(in crate::worker) fn add(&mut self, lease: &Lease, asked: Instant, length: Duration) -> Option<G> {
        let held = Held { lease: lease.clone(), until: asked + length, state: LeaseState::Ready };
        self.held.insert(key(lease), held);
        let earlier = self.held.range((lease.job, i64::MIN)..key(lease));
        earlier.into_iter().find_map(|(_, held)| match &held.state {
            LeaseState::Running(guest) => Some(guest.clone()),
            LeaseState::Ready | LeaseState::Stale => None,
        })
    }

    /// Decides whether the guest of `lease` may start at `now`.
    pub(in crate::worker) fn start(&mut self, lease: &Lease, guest: &G, now: Instant) -> Start {
        match self.held.get_mut(&key(lease)) {
            Some(Held { state: LeaseState::Stale, .. }) | None => Start::Lost,
            Some(held) if self.is_closed || now >= held.until => {
                held.state = LeaseState::Stale;
                Start::TooLate
            }
            Some(held) => {
                held.state = LeaseState::Running(guest.clone());
                Start::Go
            }
        }
    }

    /// `leases` were renewed for `length` from `asked`, the instant of the request.
    pub(in crate::worker) fn renewed(&mut self, leases: &[Lease], asked: Instant, length: Duration) {
        for lease in leases {
            if let Some(held) = self.held.get_mut(&key(lease)) {
                held.until = held.until.max(asked + length);
            }
        }
    }

    /// The lease is no longer valid. Returns the guest that runs under it.
    pub(in crate::worker) fn lost(&mut self, lease: &Lease) -> Option<G> {
        let held = self.held.get_mut(&key(lease))?;
        match &held.state {
            LeaseState::Running(guest) => Some(guest.clone()),
            LeaseState::Ready | LeaseState::Stale => {
                held.state = LeaseState::Stale;
                None
            }
        }
    }

    /// The outcome is recorded, or the lease was given back.
    pub(in crate::worker) fn remove(&mut self, lease: &Lease) {
        self.held.remove(&key(lease));
    }

    /// No guest may start from now on. Returns the running guests.
    pub(in crate::worker) fn close(&mut self) -> Vec<G> {
        self.is_closed = true;
        self.running().map(|(_, guest)| guest.clone()).collect()
    }

    /// All leases.
    pub(in crate::worker) fn all(&self) -> Vec<Lease> {
        self.held.values().map(|held| held.lease.clone()).collect()
    }

    /// The running guests with their leases.
    pub(in crate::worker) fn running(&self) -> impl Iterator<Item = (&Lease, &G)> {
        self.held.values().filter_map(|held| match &held.state {
            LeaseState::Running(guest) => Some((&held.lease, guest)),
            LeaseState::Ready | LeaseState::Stale => None,
        })
    }
}

fn key(lease: &Lease) -> (JobRef, i64) {
    (lease.job, lease.token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::WorkerName;

    const LENGTH: Duration = Duration::from_secs(15);

    fn lease(seq: i64, token: i64) -> Lease {
        Lease { job: JobRef::from_seq(seq), token, worker: WorkerName::new("w") }
    }

    fn held(now: Instant) -> Leases<&'static str> {
        let mut leases = Leases::default();
        assert_eq!(leases.add(&lease(1, 1), now, LENGTH), None);
        leases
    }

    #[test]
    fn a_guest_starts_only_while_its_lease_is_valid() {
        let now = Instant::now();
        assert_eq!(held(now).start(&lease(1, 1), &"guest", now + LENGTH / 2), Start::Go);
        assert_eq!(held(now).start(&lease(1, 1), &"guest", now + LENGTH), Start::TooLate);
        assert_eq!(held(now).start(&lease(2, 1), &"guest", now), Start::Lost);
        let mut renewed = held(now);
        renewed.renewed(&[lease(1, 1)], now + LENGTH / 2, LENGTH);
        assert_eq!(renewed.start(&lease(1, 1), &"guest", now + LENGTH), Start::Go);
    }

    #[test]
    fn no_guest_starts_under_a_lease_that_was_taken_over() {
        let now = Instant::now();
        let mut leases = held(now);
        assert_eq!(leases.lost(&lease(1, 1)), None);
        assert_eq!(leases.start(&lease(1, 1), &"guest", now), Start::Lost);
    }

    #[test]
    fn no_guest_starts_after_guests_were_stopped() {
        let now = Instant::now();
        let mut leases = held(now);
        leases.add(&lease(2, 1), now, LENGTH);
        leases.start(&lease(1, 1), &"guest", now);
        assert_eq!(leases.close(), ["guest"]);
        assert_eq!(leases.start(&lease(2, 1), &"other", now), Start::TooLate);
    }

    #[test]
    fn a_new_attempt_of_a_job_stops_the_one_that_still_runs_here() {
        let now = Instant::now();
        let mut leases = held(now);
        leases.start(&lease(1, 1), &"old", now);
        assert_eq!(leases.add(&lease(2, 7), now, LENGTH), None);
        assert_eq!(leases.add(&lease(1, 2), now, LENGTH), Some("old"));
    }
}
