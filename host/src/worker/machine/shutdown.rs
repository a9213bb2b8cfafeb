//! How a pool stops: running attempts may continue for the grace period, then they are stopped, and their outcomes are
//! recorded while time is left.
//!
//! All of it takes at most the grace period plus one second (I13). The constants below divide that second; the rest is a
//! reserve for slow machines.

use std::time::{Duration, Instant};

/// After the grace period: the time for recording the attempts that were stopped.
const LAST_WRITES: Duration = Duration::from_millis(500);

/// After that: the time for removing the daemon's status from the database.
pub(in crate::worker) const SIGN_OFF: Duration = Duration::from_millis(150);

/// An event during shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Event {
    /// The outcome of every attempt is recorded.
    AllEnded,
    /// A request to stop at once, without waiting for the grace period.
    Hurry,
    /// The instant of [`Shutdown::wake_at`] has come.
    Tick,
}

/// What the caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Action {
    /// Keep waiting.
    Wait,
    /// Stop all guests and keep waiting.
    StopGuests,
    /// Stop waiting.
    Leave,
}

/// The state machine.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) enum Shutdown {
    /// Running attempts may end by themselves.
    Draining {
        /// The end of the grace period.
        until: Instant,
    },
    /// Guests were stopped, and their outcomes are being recorded.
    Recording {
        /// When to stop waiting for that.
        until: Instant,
    },
    /// Done.
    Over,
}

impl Shutdown {
    pub(in crate::worker) fn begin(grace: Duration, now: Instant) -> Self {
        Self::Draining { until: now + grace }
    }

    /// When to send [`Event::Tick`], or `None` once shutdown is over.
    pub(in crate::worker) fn wake_at(&self) -> Option<Instant> {
        match self {
            Self::Draining { until } | Self::Recording { until } => Some(*until),
            Self::Over => None,
        }
    }

    pub(in crate::worker) fn on(&mut self, event: Event, now: Instant) -> Action {
        match (*self, event) {
            (Self::Over, _) => Action::Leave,
            (_, Event::AllEnded) => {
                *self = Self::Over;
                Action::Leave
            }
            (Self::Draining { until }, event) if event == Event::Hurry || now >= until => {
                *self = Self::Recording { until: now + LAST_WRITES };
                Action::StopGuests
            }
            (Self::Recording { until }, _) if now >= until => {
                *self = Self::Over;
                Action::Leave
            }
            _ => Action::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(25);

    #[test]
    fn attempts_that_end_within_the_grace_period_are_not_stopped() {
        let start = Instant::now();
        let mut shutdown = Shutdown::begin(GRACE, start);
        assert_eq!(shutdown.on(Event::Tick, start + GRACE / 2), Action::Wait);
        assert_eq!(shutdown.on(Event::AllEnded, start + GRACE / 2), Action::Leave);
        assert_eq!(shutdown.wake_at(), None);
    }

    #[test]
    fn shutdown_takes_at_most_the_grace_period_plus_a_second() {
        let start = Instant::now();
        let mut shutdown = Shutdown::begin(GRACE, start);
        assert_eq!(shutdown.on(Event::Tick, start + GRACE), Action::StopGuests);
        let last = shutdown.wake_at().unwrap();
        assert_eq!(shutdown.on(Event::Tick, last), Action::Leave);
        assert!(last + SIGN_OFF < start + GRACE + Duration::from_secs(1));
    }

    #[test]
    fn a_second_request_stops_guests_at_once_and_a_third_changes_nothing() {
        let start = Instant::now();
        let mut shutdown = Shutdown::begin(GRACE, start);
        assert_eq!(shutdown.on(Event::Hurry, start), Action::StopGuests);
        let until = shutdown.wake_at();
        assert_eq!(shutdown.on(Event::Hurry, start), Action::Wait);
        assert_eq!(shutdown.wake_at(), until);
    }
}
