//! Detects jumps of the wall clock, caused by a suspend or by setting the time.
//!
//! Leases and due times are wall-clock instants. After a jump ahead, every lease looks expired although its worker is alive,
//! and retention would delete jobs that it should keep. After a jump back, jobs wait longer than they should.

use std::time::{Duration, Instant, SystemTime};

/// If the wall clock and the monotonic clock differ by more than this between two checks, the wall clock was set.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The direction and size of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Jump {
    /// The clock was set ahead.
    Ahead(Duration),
    /// The clock was set back.
    Back(Duration),
}

/// Compares the wall clock with the monotonic clock.
#[derive(Debug)]
pub(in crate::worker) struct ClockJumpDetector {
    wall: SystemTime,
    monotonic: Instant,
}

impl ClockJumpDetector {
    pub(in crate::worker) fn new(wall: SystemTime, monotonic: Instant) -> Self {
        Self { wall, monotonic }
    }

    /// The jump since the last [`take_jump`](Self::take_jump), if any.
    pub(in crate::worker) fn jump(&self, wall: SystemTime, monotonic: Instant) -> Option<Jump> {
        let expected = self.wall + monotonic.saturating_duration_since(self.monotonic);
        match wall.duration_since(expected) {
            Ok(ahead) => (ahead > TOLERANCE).then_some(Jump::Ahead(ahead)),
            Err(back) => (back.duration() > TOLERANCE).then_some(Jump::Back(back.duration())),
        }
    }

    /// Like [`jump`](Self::jump), and starts over from the given instants.
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
    fn a_jump_in_either_direction_is_reported_once() {
        let (wall, monotonic) = (SystemTime::now(), Instant::now());
        let mut detector = ClockJumpDetector::new(wall, monotonic);
        let second = Duration::from_secs(1);
        assert_eq!(detector.take_jump(wall + second, monotonic + second), None);
        assert_eq!(detector.take_jump(wall + 60 * second, monotonic + 2 * second), Some(Jump::Ahead(58 * second)));
        assert_eq!(detector.take_jump(wall + 61 * second, monotonic + 3 * second), None);
        assert_eq!(detector.take_jump(wall, monotonic + 4 * second), Some(Jump::Back(62 * second)));
        assert_eq!(detector.take_jump(wall + second, monotonic + 5 * second), None);
    }
}
