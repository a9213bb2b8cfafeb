//! Notices that the wall clock has jumped: a suspend, or somebody set the time.
//!
//! Leases are instants of the wall clock. After a jump ahead every lease looks expired although its worker lives,
//! so whoever sees a jump renews its own leases and leaves those of others alone until they had time to do the same.

use std::time::{Duration, Instant, SystemTime};

/// A wall clock that runs this much apart from the monotonic one between two looks has been set.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Compares the wall clock with the monotonic one.
#[derive(Debug)]
pub(super) struct Clock {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }

    /// Whether the wall clock has jumped ahead since the last look.
    pub(super) fn jumped(&mut self) -> bool {
        self.jumped_at(SystemTime::now(), Instant::now())
    }

    fn jumped_at(&mut self, wall: SystemTime, monotonic: Instant) -> bool {
        let by_wall = wall.duration_since(self.wall).unwrap_or_default();
        let by_monotonic = monotonic.duration_since(self.monotonic);
        (self.wall, self.monotonic) = (wall, monotonic);
        by_wall > by_monotonic + TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_ahead_is_seen_once_and_a_jump_back_never() {
        let mut clock = Clock::new();
        let (wall, monotonic) = (clock.wall, clock.monotonic);
        let second = Duration::from_secs(1);
        assert!(!clock.jumped_at(wall + second, monotonic + second));
        assert!(clock.jumped_at(wall + 60 * second, monotonic + 2 * second));
        assert!(!clock.jumped_at(wall + 61 * second, monotonic + 3 * second));
        assert!(!clock.jumped_at(wall, monotonic + 4 * second));
    }
}
