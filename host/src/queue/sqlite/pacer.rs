//! How long the writer leaves the lock free for other processes. Only computes the pause; the writer does the waiting.
//!
//! SQLite does not show that a process waits for its lock, and a waiting process polls only at 1, 2, 5, 10, 15, 20, 25 ms
//! and so on. What counts is the share of time in which the lock is free. So, while others write, there is a pause after
//! each transaction, in proportion to how long it held the lock. Commands that arrive meanwhile join the next transaction,
//! which saves commits.

use std::time::{Duration, Instant};

/// After a foreign commit, more are expected for this long.
const MEMORY: Duration = Duration::from_secs(1);

/// A shorter pause is not worth a sleep.
const SHORTEST: Duration = Duration::from_millis(1);

/// Up to this length, a pause is one and a half times as long as the lock was held: the lock is free for three fifths of the
/// time. Longer ones are two thirds as long.
const GENEROUS: Duration = Duration::from_millis(3);

/// The longest pause: every waiting process has polled by then.
const LONGEST: Duration = Duration::from_millis(150);

/// What is known about the lock.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    foreign: Option<Instant>,
    /// When the lock was released, and the pause that follows.
    released: Option<(Instant, Duration)>,
}

impl Pacer {
    /// Another process has committed.
    pub(super) fn foreign_commit(&mut self, now: Instant) {
        self.foreign = Some(now);
    }

    /// A transaction has ended that held the lock for `held`.
    pub(super) fn released(&mut self, now: Instant, held: Duration) {
        let pause = (held * 3 / 2).min(GENEROUS.max(held * 2 / 3));
        self.released = Some((now, pause.clamp(SHORTEST, LONGEST)));
    }

    /// How long to wait before the lock is taken again.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let foreign = self.foreign.filter(|foreign| now.saturating_duration_since(*foreign) < MEMORY);
        let (released, pause) = self.released.filter(|_| foreign.is_some())?;
        let left = (released + pause).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn pause_after(held: Duration) -> Duration {
        let (mut pacer, now) = (Pacer::default(), Instant::now());
        pacer.foreign_commit(now);
        pacer.released(now, held);
        pacer.pause(now).unwrap()
    }

    #[test]
    fn without_foreign_commits_there_is_no_pause() {
        let (mut pacer, now) = (Pacer::default(), Instant::now());
        pacer.released(now, ms(500));
        assert_eq!(pacer.pause(now), None);
        pacer.foreign_commit(now);
        pacer.released(now + ms(999), ms(5));
        assert!(pacer.pause(now + ms(999)).is_some());
        assert_eq!(pacer.pause(now + ms(1000)), None, "the foreign commit is long past");
    }

    #[test]
    fn beside_other_writers_the_lock_is_free_for_at_least_two_fifths_of_the_time() {
        let shares = [1, 2, 3, 6, 30].map(|held| {
            let pause = pause_after(ms(held));
            pause.as_secs_f64() / (pause + ms(held)).as_secs_f64()
        });
        assert!(shares.iter().all(|free| *free >= 0.399), "{shares:?}");
        assert!(shares[..2].iter().all(|free| *free >= 0.599), "{shares:?}");
    }

    #[test]
    fn a_pause_is_at_least_a_millisecond_and_at_most_150() {
        assert_eq!(pause_after(Duration::from_micros(50)), ms(1));
        assert_eq!(pause_after(Duration::from_secs(60)), ms(150));
    }

    #[test]
    fn idle_time_counts_as_pause() {
        let (mut pacer, now) = (Pacer::default(), Instant::now());
        pacer.foreign_commit(now);
        pacer.released(now, ms(2));
        assert_eq!(pacer.pause(now + ms(1)), Some(ms(2)));
        assert_eq!(pacer.pause(now + ms(3)), None);
    }
}
