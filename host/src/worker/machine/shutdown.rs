//! How a pool stops: running attempts get their grace, then they are stopped, and what cannot be recorded in time is left.
//!
//! The whole takes the grace plus one second at most (I13). That second is divided here; what is left of it is a reserve
//! for a slow machine.

use std::time::{Duration, Instant};

/// After the grace: for recording the attempts that were stopped.
const LAST_WRITES: Duration = Duration::from_millis(500);

/// After that: for taking back what this daemon said about itself.
pub(in crate::worker) const SIGN_OFF: Duration = Duration::from_millis(150);

/// What happens while a pool stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Event {
    /// Every attempt is on record.
    AllEnded,
    /// Somebody asks to stop at once.
    Hurry,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Action {
    /// Go on waiting.
    Wait,
    /// Stop all guests, and wait on.
    StopGuests,
    /// Wait no longer.
    Leave,
}

/// The state machine.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) enum Shutdown {
    /// Running attempts may end by themselves until then.
    Draining {
        /// The end of the grace.
        until: Instant,
    },
    /// Guests have been stopped; their ends are being recorded until then.
    Recording {
        /// The end of patience.
        until: Instant,
    },
    /// Nothing is waited for any more.
    Over,
}

impl Shutdown {
    pub(in crate::worker) fn begin(grace: Duration, now: Instant) -> Self {
        Self::Draining { until: now + grace }
    }

    /// When to send a tick; `None` once it is over.
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
    fn attempts_that_end_in_their_grace_are_not_stopped() {
        let start = Instant::now();
        let mut shutdown = Shutdown::begin(GRACE, start);
        assert_eq!(shutdown.on(Event::Tick, start + GRACE / 2), Action::Wait);
        assert_eq!(shutdown.on(Event::AllEnded, start + GRACE / 2), Action::Leave);
        assert_eq!(shutdown.wake_at(), None);
    }

    #[test]
    fn whatever_the_guests_do_it_is_over_within_the_grace_and_a_second() {
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
