//! Notices that the wall clock has jumped: a suspend, or somebody set the time.
//!
//! Leases and due times are instants of the wall clock. After a jump ahead every lease looks expired although its worker
//! lives, and retention would delete what it should keep; after a jump back, jobs wait longer than they should.

use std::time::{Duration, Instant, SystemTime};

/// A wall clock that runs this much apart from the monotonic one between two looks has been set.
const TOLERANCE: Duration = Duration::from_secs(1);

/// By how much the wall clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Jump {
    /// Prefetch.
    Ahead(Duration),
    /// Back.
    Back(Duration),
}

/// Compares the wall clock with the monotonic one.
#[derive(Debug)]
pub(in crate::worker) struct Clock {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clock {
    pub(in crate::worker) fn new(wall: SystemTime, monotonic: Instant) -> Self {
        Self { wall, monotonic }
    }

    /// Whether the wall clock was set since the last look that took note of it.
    pub(in crate::worker) fn jump(&self, wall: SystemTime, monotonic: Instant) -> Option<Jump> {
        let expected = self.wall + monotonic.saturating_duration_since(self.monotonic);
        match wall.duration_since(expected) {
            Ok(ahead) => (ahead > TOLERANCE).then_some(Jump::Ahead(ahead)),
            Err(back) => (back.duration() > TOLERANCE).then_some(Jump::Back(back.duration())),
        }
    }

    /// The same, and takes note of it.
    pub(in crate::worker) fn take_jump(&mut self, wall: SystemTime, monotonic: Instant) -> Option<Jump> {
        let jump = self.jump(wall, monotonic);
        (self.wall, self.monotonic) = (wall, monotonic);
        jump
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_seen_once_in_either_direction() {
        let (wall, monotonic) = (SystemTime::now(), Instant::now());
        let mut clock = Clock::new(wall, monotonic);
        let second = Duration::from_secs(1);
        assert_eq!(clock.take_jump(wall + second, monotonic + second), None);
        assert_eq!(clock.take_jump(wall + 60 * second, monotonic + 2 * second), Some(Jump::Ahead(58 * second)));
        assert_eq!(clock.take_jump(wall + 61 * second, monotonic + 3 * second), None);
        assert_eq!(clock.take_jump(wall, monotonic + 4 * second), Some(Jump::Back(62 * second)));
        assert_eq!(clock.take_jump(wall + second, monotonic + 5 * second), None);
    }
}
