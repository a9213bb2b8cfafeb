//! When to delete old jobs, and when to keep away: after the wall clock was set ahead, everything looks old.
//!
//! Then nothing is deleted for the length of a lease, so that a clock that comes right again at once does no harm; after
//! that, for an hour, one batch a round, so that somebody can notice. A clock that was right before deletes at full speed.

use std::time::{Duration, Instant};

/// How often old jobs are looked for.
const ROUND: Duration = Duration::from_secs(60);

/// The pause between two batches, so that others get their turn.
const PAUSE: Duration = Duration::from_millis(20);

/// How long deletion stays slow after a jump.
const CAUTION: Duration = Duration::from_secs(3600);

/// The state machine.
#[derive(Debug)]
pub(in crate::worker) struct Retention {
    next: Instant,
    /// One batch a round until then.
    cautious_until: Option<Instant>,
}

impl Retention {
    /// The first batch is due at once.
    pub(in crate::worker) fn new(now: Instant) -> Self {
        Self { next: now, cautious_until: None }
    }

    /// When the next batch may be deleted.
    pub(in crate::worker) fn next(&self) -> Instant {
        self.next
    }

    /// The wall clock was set ahead.
    pub(in crate::worker) fn jumped_ahead(&mut self, lease: Duration, now: Instant) {
        self.next = self.next.max(now + lease);
        self.cautious_until = Some(now + CAUTION);
    }

    /// A batch was deleted; `more` when others are waiting.
    pub(in crate::worker) fn deleted(&mut self, more: bool, now: Instant) {
        let is_cautious = self.cautious_until.is_some_and(|until| now < until);
        self.next = self.next.max(now + if more && !is_cautious { PAUSE } else { ROUND });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_follow_each_other_until_nothing_is_old() {
        let start = Instant::now();
        let mut retention = Retention::new(start);
        assert_eq!(retention.next(), start);
        retention.deleted(true, start);
        assert_eq!(retention.next(), start + PAUSE);
        retention.deleted(false, start + PAUSE);
        assert_eq!(retention.next(), start + PAUSE + ROUND);
    }

    #[test]
    fn a_clock_that_was_set_ahead_deletes_nothing_for_a_lease_and_then_one_batch_a_round() {
        let start = Instant::now();
        let lease = Duration::from_secs(15);
        let mut retention = Retention::new(start);
        retention.jumped_ahead(lease, start);
        assert_eq!(retention.next(), start + lease);
        retention.deleted(true, start + lease);
        assert_eq!(retention.next(), start + lease + ROUND);
        retention.deleted(true, start + CAUTION);
        assert_eq!(retention.next(), start + CAUTION + PAUSE);
    }
}
