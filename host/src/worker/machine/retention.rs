//! When to delete old jobs.
//!
//! After the wall clock was set ahead, everything looks old. Then nothing is deleted for the length of a lease, in case the
//! clock is corrected at once. For an hour after that, only one batch per round is deleted, so that someone can notice.

use std::time::{Duration, Instant, SystemTime};

use super::clock_jump::{ClockJumpDetector, Jump};

/// The pause between two rounds.
const ROUND: Duration = Duration::from_secs(60);

/// The pause between two batches of a round, so that other writers get their turn.
const PAUSE: Duration = Duration::from_millis(20);

/// How long deletion stays slow after a jump of the clock.
const CAUTION: Duration = Duration::from_secs(3600);

/// The state machine.
#[derive(Debug)]
pub(in crate::worker) struct Retention {
    clock: ClockJumpDetector,
    next: Instant,
    /// Until then, one batch per round.
    cautious_until: Option<Instant>,
}

impl Retention {
    /// The first batch may be deleted at once.
    pub(in crate::worker) fn new(wall: SystemTime, now: Instant) -> Self {
        Self { clock: ClockJumpDetector::new(wall, now), next: now, cautious_until: None }
    }

    /// When to ask [`may_delete`](Self::may_delete) again.
    pub(in crate::worker) fn next(&self) -> Instant {
        self.next
    }

    /// Whether the next batch may be deleted now. Not if the clock was set ahead since the last call.
    pub(in crate::worker) fn may_delete(&mut self, lease: Duration, wall: SystemTime, now: Instant) -> bool {
        if let Some(Jump::Ahead(_)) = self.clock.take_jump(wall, now) {
            self.next = now + lease;
            self.cautious_until = Some(now + CAUTION);
        }
        now >= self.next
    }

    /// A batch was deleted. `more`: there are more old jobs.
    pub(in crate::worker) fn deleted(&mut self, more: bool, now: Instant) {
        let is_cautious = self.cautious_until.is_some_and(|until| now < until);
        self.next = now + if more && !is_cautious { PAUSE } else { ROUND };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    #[test]
    fn batches_follow_each_other_until_no_old_job_is_left() {
        let (wall, start) = (SystemTime::now(), Instant::now());
        let mut retention = Retention::new(wall, start);
        assert!(retention.may_delete(LEASE, wall, start));
        retention.deleted(true, start);
        assert_eq!(retention.next(), start + PAUSE);
        assert!(!retention.may_delete(LEASE, wall, start));
        assert!(retention.may_delete(LEASE, wall + PAUSE, start + PAUSE));
        retention.deleted(false, start + PAUSE);
        assert_eq!(retention.next(), start + PAUSE + ROUND);
    }

    #[test]
    fn after_a_jump_ahead_nothing_is_deleted_for_a_lease_and_then_one_batch_per_round() {
        let (wall, start) = (SystemTime::now(), Instant::now());
        let mut retention = Retention::new(wall, start);
        let wall = wall + Duration::from_secs(86_400);
        assert!(!retention.may_delete(LEASE, wall, start));
        assert_eq!(retention.next(), start + LEASE);
        assert!(retention.may_delete(LEASE, wall + LEASE, start + LEASE));
        retention.deleted(true, start + LEASE);
        assert_eq!(retention.next(), start + LEASE + ROUND);
        retention.deleted(true, start + CAUTION);
        assert_eq!(retention.next(), start + CAUTION + PAUSE);
    }
}
