//! Limits how many lines a second the log gets about alike events, so that a flood of failing jobs doesn't flood the log.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Lines in a window. Further events are counted.
const LINES: u64 = 10;

/// The length of a window. It starts with the first event.
pub(in crate::worker) const WINDOW: Duration = Duration::from_secs(1);

/// Events by kind `K`.
#[derive(Debug)]
pub(in crate::worker) struct LogLimit<K> {
    windows: HashMap<K, Window>,
}

#[derive(Debug)]
struct Window {
    start: Instant,
    events: u64,
}

/// Whether an event is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Admission {
    /// It is.
    Log,
    /// It is only counted. [`LogLimit::take_suppressed`] returns the count.
    Suppress,
}

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self { windows: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone> LogLimit<K> {
    pub(in crate::worker) fn admit(&mut self, kind: K, now: Instant) -> Admission {
        let window = match self.windows.entry(kind) {
            Entry::Vacant(entry) => entry.insert(Window { start: now, events: 0 }),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        // A window with suppressed events lasts until they have been taken.
        if window.events <= LINES && now >= window.start + WINDOW {
            *window = Window { start: now, events: 0 };
        }
        window.events += 1;
        if window.events <= LINES { Admission::Log } else { Admission::Suppress }
    }

    /// The number of suppressed events of each kind since the last call. All windows start anew.
    pub(in crate::worker) fn take_suppressed(&mut self) -> Vec<(K, u64)> {
        let suppressed = |(kind, window): (K, Window)| (window.events > LINES).then(|| (kind, window.events - LINES));
        self.windows.drain().filter_map(suppressed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(limit: &mut LogLimit<&'static str>, kind: &'static str, events: u64, now: Instant) -> u64 {
        (0..events).map(|_| u64::from(limit.admit(kind, now) == Admission::Log)).sum()
    }

    #[test]
    fn a_flood_is_cut_and_counted_for_each_kind() {
        let (mut limit, now) = (LogLimit::default(), Instant::now());
        assert_eq!(admitted(&mut limit, "a", 1_000, now), LINES);
        assert_eq!(admitted(&mut limit, "b", LINES, now), LINES);
        assert_eq!(limit.take_suppressed(), [("a", 1_000 - LINES)]);
        assert_eq!(limit.take_suppressed(), []);
        assert_eq!(admitted(&mut limit, "a", 1, now), 1);
    }

    #[test]
    fn a_slow_stream_is_never_cut() {
        let (mut limit, start) = (LogLimit::default(), Instant::now());
        for second in 0..10 {
            assert_eq!(admitted(&mut limit, "a", LINES, start + second * WINDOW), LINES);
        }
        assert_eq!(limit.take_suppressed(), []);
    }

    #[test]
    fn suppressed_events_are_counted_until_they_are_taken() {
        let (mut limit, start) = (LogLimit::default(), Instant::now());
        admitted(&mut limit, "a", LINES + 1, start);
        assert_eq!(admitted(&mut limit, "a", 2, start + 10 * WINDOW), 0);
        assert_eq!(limit.take_suppressed(), [("a", 3)]);
    }
}
