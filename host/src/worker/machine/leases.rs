//! The leases this pool holds, from the claim until the end of the attempt is on record.
//!
//! A guest starts only on a lease that still holds by this process's own clock (I3), and not at all once the pool stops
//! its guests (I13).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::queue::{JobRef, Lease};

/// All leases, each with what runs on it: `G` is the hold on a running guest.
#[derive(Debug)]
pub(in crate::worker) struct Leases<G> {
    held: BTreeMap<(JobRef, i64), Held<G>>,
    is_closed: bool,
}

#[derive(Debug)]
struct Held<G> {
    lease: Lease,
    /// Until when it holds at least, as this process sees it.
    until: Instant,
    stage: Stage<G>,
}

#[derive(Debug)]
enum Stage<G> {
    /// Claimed; no guest yet.
    Ready,
    /// Its guest runs, or has run and its end is being written.
    Running(G),
    /// No guest yet, and none shall start: the lease no longer holds.
    StaleLease,
}

/// Whether a guest may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Start {
    /// It may, and counts as running from now on.
    Go,
    /// The lease has been taken over or its job cancelled: there is nothing to give back.
    Lost,
    /// The lease ran out or the pool has stopped: the job is to be given back.
    TooLate,
}

impl<G> Default for Leases<G> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), is_closed: false }
    }
}

impl<G: Clone> Leases<G> {
    /// A claim that was asked for at `asked` has brought `lease`, which holds for `length`. Returns the guest of an earlier
    /// attempt of the same job that still runs here: the job was cancelled and retried, and that guest must end now.
    pub(in crate::worker) fn add(&mut self, lease: &Lease, asked: Instant, length: Duration) -> Option<G> {
        let held = Held { lease: lease.clone(), until: asked + length, stage: Stage::Ready };
        self.held.insert(key(lease), held);
        let earlier = self.held.range((lease.job, i64::MIN)..key(lease));
        earlier.into_iter().find_map(|(_, held)| match &held.stage {
            Stage::Running(guest) => Some(guest.clone()),
            Stage::Ready | Stage::StaleLease => None,
        })
    }

    /// The guest of `lease` wants to start at `now`.
    pub(in crate::worker) fn start(&mut self, lease: &Lease, guest: &G, now: Instant) -> Start {
        match self.held.get_mut(&key(lease)) {
            Some(Held { stage: Stage::StaleLease, .. }) | None => Start::Lost,
            Some(held) if self.is_closed || now >= held.until => {
                held.stage = Stage::StaleLease;
                Start::TooLate
            }
            Some(held) => {
                held.stage = Stage::Running(guest.clone());
                Start::Go
            }
        }
    }

    /// A renewal of `leases` by `length` that was asked for at `asked` has been committed.
    pub(in crate::worker) fn renewed(&mut self, leases: &[Lease], asked: Instant, length: Duration) {
        for lease in leases {
            if let Some(held) = self.held.get_mut(&key(lease)) {
                held.until = held.until.max(asked + length);
            }
        }
    }

    /// The lease no longer holds. Returns the guest that runs on it.
    pub(in crate::worker) fn lost(&mut self, lease: &Lease) -> Option<G> {
        let held = self.held.get_mut(&key(lease))?;
        match &held.stage {
            Stage::Running(guest) => Some(guest.clone()),
            Stage::Ready | Stage::StaleLease => {
                held.stage = Stage::StaleLease;
                None
            }
        }
    }

    /// Its end is on record, or it was given back.
    pub(in crate::worker) fn remove(&mut self, lease: &Lease) {
        self.held.remove(&key(lease));
    }

    /// No guest starts from here on. Returns those that run.
    pub(in crate::worker) fn close(&mut self) -> Vec<G> {
        self.is_closed = true;
        self.running().map(|(_, guest)| guest.clone()).collect()
    }

    /// Every lease.
    pub(in crate::worker) fn all(&self) -> Vec<Lease> {
        self.held.values().map(|held| held.lease.clone()).collect()
    }

    /// The guests that run, each with its lease.
    pub(in crate::worker) fn running(&self) -> impl Iterator<Item = (&Lease, &G)> {
        self.held.values().filter_map(|held| match &held.stage {
            Stage::Running(guest) => Some((&held.lease, guest)),
            Stage::Ready | Stage::StaleLease => None,
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
    fn a_guest_starts_only_while_its_lease_holds() {
        let now = Instant::now();
        assert_eq!(held(now).start(&lease(1, 1), &"guest", now + LENGTH / 2), Start::Go);
        assert_eq!(held(now).start(&lease(1, 1), &"guest", now + LENGTH), Start::TooLate);
        assert_eq!(held(now).start(&lease(2, 1), &"guest", now), Start::Lost);
        let mut renewed = held(now);
        renewed.renewed(&[lease(1, 1)], now + LENGTH / 2, LENGTH);
        assert_eq!(renewed.start(&lease(1, 1), &"guest", now + LENGTH), Start::Go);
    }

    #[test]
    fn no_guest_starts_on_a_lease_that_was_taken_over() {
        let now = Instant::now();
        let mut leases = held(now);
        assert_eq!(leases.lost(&lease(1, 1)), None);
        assert_eq!(leases.start(&lease(1, 1), &"guest", now), Start::Lost);
    }

    #[test]
    fn no_guest_starts_once_they_are_stopped() {
        let now = Instant::now();
        let mut leases = held(now);
        leases.add(&lease(2, 1), now, LENGTH);
        leases.start(&lease(1, 1), &"guest", now);
        assert_eq!(leases.close(), ["guest"]);
        assert_eq!(leases.start(&lease(2, 1), &"other", now), Start::TooLate);
    }

    #[test]
    fn a_new_attempt_of_a_job_ends_the_one_that_still_runs_here() {
        let now = Instant::now();
        let mut leases = held(now);
        leases.start(&lease(1, 1), &"old", now);
        assert_eq!(leases.add(&lease(2, 7), now, LENGTH), None);
        assert_eq!(leases.add(&lease(1, 2), now, LENGTH), Some("old"));
    }
}
