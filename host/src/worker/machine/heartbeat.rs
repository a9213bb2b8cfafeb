//! When to renew the leases of this pool, and when to rescue the jobs of others.
//!
//! After a clock jump, a suspend, or a long foreign lock, other daemons had no chance to renew their leases. So a daemon that
//! could not renew in time does not rescue expired leases for the length of one lease, and everybody renews first. A daemon
//! that has just started waits for two heartbeats, because the clock may just have jumped. Jobs of daemons that are proved
//! dead are always rescued.
//!
//! While nothing runs anywhere there is nothing to renew or to rescue, and the heartbeat slows down. Any claim is a write to
//! the queue, which every daemon notices: the next heartbeat follows within [`INTERVAL`].

use std::time::{Duration, Instant, SystemTime};

use super::clock_jump::{ClockJumpDetector, Jump};

/// The pause between two heartbeats while a job runs. Logs, progress and cancel requests are handled within a second, and so
/// are the jobs of a daemon that died.
pub(in crate::worker) const INTERVAL: Duration = Duration::from_millis(500);

/// The pause while no job runs. A jump of the wall clock is noticed within this time.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// What one heartbeat has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::worker) struct Beat {
    /// Renew all leases. Otherwise, only check which are no longer valid.
    pub(in crate::worker) renew: bool,
    /// The wall clock was set since the last heartbeat.
    pub(in crate::worker) jump: Option<Jump>,
    /// Rescuing expired leases is postponed by one lease, because of a jump or a pause.
    pub(in crate::worker) postpones_rescue: bool,
}

/// The state machine.
#[derive(Debug)]
pub(in crate::worker) struct Heartbeat {
    lease: Duration,
    clock: ClockJumpDetector,
    last_beat: Instant,
    renewed: Instant,
    rescue_expired_from: Instant,
    is_idle: bool,
}

impl Heartbeat {
    pub(in crate::worker) fn new(lease: Duration, wall: SystemTime, now: Instant) -> Self {
        Self {
            lease,
            clock: ClockJumpDetector::new(wall, now),
            last_beat: now,
            renewed: now,
            rescue_expired_from: now + 2 * INTERVAL,
            is_idle: false,
        }
    }

    /// Takes the length of leases from new settings.
    pub(in crate::worker) fn set_lease(&mut self, lease: Duration) {
        self.lease = lease;
    }

    /// Sets whether no job runs, neither here nor under another daemon.
    pub(in crate::worker) fn set_idle(&mut self, is_idle: bool) {
        self.is_idle = is_idle;
    }

    /// Whether a write to the queue should bring the next heartbeat forward, to [`busy_pause`](Self::busy_pause) from then.
    pub(in crate::worker) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// The pause before the next heartbeat.
    pub(in crate::worker) fn pause(&self) -> Duration {
        if self.is_idle { IDLE_INTERVAL } else { self.busy_pause() }
    }

    /// The pause while a job runs.
    pub(in crate::worker) fn busy_pause(&self) -> Duration {
        INTERVAL.min(self.lease / 4)
    }

    /// A heartbeat begins at `now`.
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

    /// A renewal requested at `asked` was committed.
    pub(in crate::worker) fn renewed(&mut self, asked: Instant) {
        self.renewed = self.renewed.max(asked);
    }

    /// The store failed at `now`. Other daemons could not renew either, so they get one lease to do it.
    pub(in crate::worker) fn failed(&mut self, now: Instant) {
        self.rescue_expired_from = self.rescue_expired_from.max(now + self.lease);
        self.is_idle = false;
    }

    /// Whether expired leases of other daemons may be rescued. A jump since the last heartbeat is left to the next one.
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
            let passed = beat * INTERVAL;
            if heartbeat.beat(wall + passed, start + passed).renew {
                heartbeat.renewed(start + passed);
                renewals.push(passed.as_secs());
            }
        }
        assert_eq!(renewals, [5, 10, 15, 20, 25, 30]);
    }

    #[test]
    fn a_daemon_that_just_started_rescues_expired_leases_after_two_heartbeats() {
        let (heartbeat, wall, start) = started();
        assert!(!heartbeat.may_rescue_expired(wall + INTERVAL, start + INTERVAL));
        assert!(heartbeat.may_rescue_expired(wall + 2 * INTERVAL, start + 2 * INTERVAL));
    }

    #[test]
    fn a_clock_jump_renews_at_once_and_postpones_rescue_by_a_lease() {
        let (mut heartbeat, wall, start) = started();
        let beat = heartbeat.beat(wall + 3600 * SECOND, start + INTERVAL);
        assert!(beat.renew && beat.postpones_rescue && beat.jump.is_some());
        heartbeat.renewed(start + INTERVAL);
        let may_rescue_expired = |heartbeat: &Heartbeat, passed: Duration| {
            heartbeat.may_rescue_expired(wall + 3600 * SECOND + passed - INTERVAL, start + passed)
        };
        assert!(!may_rescue_expired(&heartbeat, INTERVAL));
        heartbeat.renewed(start + 15 * SECOND);
        assert!(!may_rescue_expired(&heartbeat, LEASE));
        assert!(may_rescue_expired(&heartbeat, INTERVAL + LEASE));
    }

    #[test]
    fn a_clock_jump_since_the_last_heartbeat_prevents_rescue() {
        let (heartbeat, wall, start) = started();
        let now = 3 * INTERVAL;
        assert!(heartbeat.may_rescue_expired(wall + now, start + now));
        assert!(!heartbeat.may_rescue_expired(wall + now + 2 * SECOND, start + now));
        assert!(!heartbeat.may_rescue_expired(wall + now - 2 * SECOND, start + now));
    }

    #[test]
    fn a_pause_longer_than_a_third_of_the_lease_postpones_rescue() {
        let (mut heartbeat, wall, start) = started();
        let pause = 6 * SECOND;
        assert!(heartbeat.beat(wall + pause, start + pause).postpones_rescue);
        assert!(!heartbeat.beat(wall + pause + INTERVAL, start + pause + INTERVAL).postpones_rescue);
    }

    #[test]
    fn after_a_failure_of_the_store_other_daemons_get_a_lease_to_renew() {
        let (mut heartbeat, wall, start) = started();
        heartbeat.failed(start + SECOND);
        heartbeat.renewed(start + LEASE);
        assert!(!heartbeat.may_rescue_expired(wall + LEASE, start + LEASE));
        assert!(heartbeat.may_rescue_expired(wall + SECOND + LEASE, start + SECOND + LEASE));
    }

    #[test]
    fn a_daemon_that_cannot_renew_does_not_rescue_expired_leases() {
        let (mut heartbeat, wall, start) = started();
        for beat in 1..=15 {
            heartbeat.beat(wall + beat * INTERVAL, start + beat * INTERVAL);
        }
        assert!(!heartbeat.may_rescue_expired(wall + 15 * INTERVAL, start + 15 * INTERVAL), "7.5 s without a renewal");
        heartbeat.renewed(start + 14 * INTERVAL);
        assert!(heartbeat.may_rescue_expired(wall + 15 * INTERVAL, start + 15 * INTERVAL));
    }

    #[test]
    fn the_heartbeat_slows_down_while_nothing_runs() {
        let (mut heartbeat, wall, start) = started();
        assert_eq!(heartbeat.pause(), INTERVAL);
        heartbeat.set_idle(true);
        assert_eq!(heartbeat.pause(), IDLE_INTERVAL);
        let beat = heartbeat.beat(wall + IDLE_INTERVAL, start + IDLE_INTERVAL);
        assert!(!beat.postpones_rescue, "an idle pause is not a standstill");
        heartbeat.failed(start + IDLE_INTERVAL);
        assert_eq!(heartbeat.pause(), INTERVAL);
    }
}
