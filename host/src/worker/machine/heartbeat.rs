//! When to renew the leases of this pool, and when to judge those of others.
//!
//! Whoever could not renew in time does not judge: after a clock jump, a suspend or a long foreign lock, other daemons had
//! no chance to renew either. So everybody renews first, and expired leases are left alone for the length of one lease.
//! A daemon that starts gives the others two beats: the clock may just have jumped. Proved deaths need no such care.

use std::time::{Duration, Instant, SystemTime};

use super::clock_jump::{Clock, Jump};

/// How often running attempts are looked after, at most. Logs, progress and a cancel arrive within a second.
pub(in crate::worker) const BEAT: Duration = Duration::from_millis(500);

/// What a beat has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::worker) struct Beat {
    /// Renew all leases; otherwise only look which no longer hold.
    pub(in crate::worker) renew: bool,
    /// The wall clock was set since the last beat.
    pub(in crate::worker) jump: Option<Jump>,
    /// Judging is put off by a lease, because of a jump or a pause.
    pub(in crate::worker) postpones_rescue: bool,
}

/// The state machine.
#[derive(Debug)]
pub(in crate::worker) struct Heartbeat {
    lease: Duration,
    clock: Clock,
    last_beat: Instant,
    renewed: Instant,
    rescue_expired_from: Instant,
}

impl Heartbeat {
    pub(in crate::worker) fn new(lease: Duration, wall: SystemTime, now: Instant) -> Self {
        Self { lease, clock: Clock::new(wall, now), last_beat: now, renewed: now, rescue_expired_from: now + 2 * BEAT }
    }

    /// Takes another lease from the settings.
    pub(in crate::worker) fn set_lease(&mut self, lease: Duration) {
        self.lease = lease;
    }

    /// The pause between two beats.
    pub(in crate::worker) fn pause(&self) -> Duration {
        BEAT.min(self.lease / 4)
    }

    /// A beat begins at `now`.
    pub(in crate::worker) fn beat(&mut self, wall: SystemTime, now: Instant) -> Beat {
        let jump = self.clock.take_jump(wall, now);
        let was_held_up = now - self.last_beat > self.pause() + self.lease / 3;
        let postpones_rescue = was_held_up || jump.is_some();
        self.last_beat = now;
        if postpones_rescue {
            self.rescue_expired_from = now + self.lease;
        }
        Beat { renew: postpones_rescue || now - self.renewed >= self.lease / 3, jump, postpones_rescue }
    }

    /// A renewal that was asked for at `asked` has been committed.
    pub(in crate::worker) fn renewed(&mut self, asked: Instant) {
        self.renewed = self.renewed.max(asked);
    }

    /// The store has failed at `now`: others could not renew either, so they get a lease to do it.
    pub(in crate::worker) fn failed(&mut self, now: Instant) {
        self.rescue_expired_from = self.rescue_expired_from.max(now + self.lease);
    }

    /// Whether leases of others that have expired may be taken for lost. A jump since the last beat is for the next one to
    /// deal with.
    pub(in crate::worker) fn may_rescue_expired(&self, wall: SystemTime, now: Instant) -> bool {
        now >= self.rescue_expired_from && now - self.renewed < self.lease / 2 && self.clock.jump(wall, now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);
    const SECOND: Duration = Duration::from_secs(1);

    fn started() -> (Heartbeat, SystemTime, Instant) {
        let (wall, now) = (SystemTime::now(), Instant::now());
        (Heartbeat::new(LEASE, wall, now), wall, now)
    }

    #[test]
    fn leases_are_renewed_after_a_third_of_their_length() {
        let (mut heartbeat, wall, start) = started();
        let mut renewals = Vec::new();
        for beat in 1..=60 {
            let passed = beat * BEAT;
            if heartbeat.beat(wall + passed, start + passed).renew {
                heartbeat.renewed(start + passed);
                renewals.push(passed.as_secs());
            }
        }
        assert_eq!(renewals, [5, 10, 15, 20, 25, 30]);
    }

    #[test]
    fn a_daemon_that_just_started_may_judge_after_two_beats() {
        let (heartbeat, wall, start) = started();
        assert!(!heartbeat.may_rescue_expired(wall + BEAT, start + BEAT));
        assert!(heartbeat.may_rescue_expired(wall + 2 * BEAT, start + 2 * BEAT));
    }

    #[test]
    fn a_jump_of_the_clock_renews_at_once_and_puts_judging_off_by_a_lease() {
        let (mut heartbeat, wall, start) = started();
        let beat = heartbeat.beat(wall + 3600 * SECOND, start + BEAT);
        assert!(beat.renew && beat.postpones_rescue && beat.jump.is_some());
        heartbeat.renewed(start + BEAT);
        let may_rescue_expired = |heartbeat: &Heartbeat, passed: Duration| {
            heartbeat.may_rescue_expired(wall + 3600 * SECOND + passed - BEAT, start + passed)
        };
        assert!(!may_rescue_expired(&heartbeat, BEAT));
        heartbeat.renewed(start + 15 * SECOND);
        assert!(!may_rescue_expired(&heartbeat, LEASE));
        assert!(may_rescue_expired(&heartbeat, BEAT + LEASE));
    }

    #[test]
    fn a_jump_between_two_beats_puts_judging_off() {
        let (heartbeat, wall, start) = started();
        let now = 3 * BEAT;
        assert!(heartbeat.may_rescue_expired(wall + now, start + now));
        assert!(!heartbeat.may_rescue_expired(wall + now + 2 * SECOND, start + now));
        assert!(!heartbeat.may_rescue_expired(wall + now - 2 * SECOND, start + now));
    }

    #[test]
    fn a_pause_longer_than_a_third_of_the_lease_does_the_same() {
        let (mut heartbeat, wall, start) = started();
        let pause = 6 * SECOND;
        assert!(heartbeat.beat(wall + pause, start + pause).postpones_rescue);
        assert!(!heartbeat.beat(wall + pause + BEAT, start + pause + BEAT).postpones_rescue);
    }

    #[test]
    fn after_a_failure_of_the_store_others_get_a_lease_to_renew() {
        let (mut heartbeat, wall, start) = started();
        heartbeat.failed(start + SECOND);
        heartbeat.renewed(start + LEASE);
        assert!(!heartbeat.may_rescue_expired(wall + LEASE, start + LEASE));
        assert!(heartbeat.may_rescue_expired(wall + SECOND + LEASE, start + SECOND + LEASE));
    }

    #[test]
    fn one_that_cannot_renew_does_not_judge() {
        let (mut heartbeat, wall, start) = started();
        for beat in 1..=15 {
            heartbeat.beat(wall + beat * BEAT, start + beat * BEAT);
        }
        assert!(!heartbeat.may_rescue_expired(wall + 15 * BEAT, start + 15 * BEAT), "7.5 s without a renewal");
        heartbeat.renewed(start + 14 * BEAT);
        assert!(heartbeat.may_rescue_expired(wall + 15 * BEAT, start + 15 * BEAT));
    }
}
