//! When the writer leaves others their turn. Decides and does nothing: what happened goes in, when to begin comes out.
//!
//! Nobody can be seen waiting for SQLite's lock, and whoever does tries again only at 1, 2, 5, 10, 15, 20, 25 ms and so on: what
//! counts is how large a share of the time the lock is free. So there is a pause after each transaction, in proportion to
//! how long it held the lock; what comes meanwhile goes into the next, which saves commits. Only while others write.

use std::time::{Duration, Instant};

/// A foreign commit is taken for a sign of more to come for so long.
const MEMORY: Duration = Duration::from_secs(1);

/// Less is not worth a sleep.
const SHORTEST: Duration = Duration::from_millis(1);

/// Up to here a pause is one and a half times as long as the lock was held: it is held for two fifths of the time.
const GENEROUS: Duration = Duration::from_millis(3);

/// However long the lock was held. By then everybody who waits has tried.
const LONGEST: Duration = Duration::from_millis(150);

/// What is known of the lock.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    foreign: Option<Instant>,
    /// When the lock was given back, and the pause that its time is worth.
    released: Option<(Instant, Duration)>,
}

impl Pacer {
    /// Somebody else has committed.
    pub(super) fn foreign_commit(&mut self, now: Instant) {
        self.foreign = Some(now);
    }

    /// A transaction has ended that held the lock for so long.
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
    fn alone_it_never_waits() {
        let (mut pacer, now) = (Pacer::default(), Instant::now());
        pacer.released(now, ms(500));
        assert_eq!(pacer.pause(now), None);
        pacer.foreign_commit(now);
        pacer.released(now + ms(999), ms(5));
        assert!(pacer.pause(now + ms(999)).is_some());
        assert_eq!(pacer.pause(now + ms(1000)), None, "the foreign commit is long past");
    }

    #[test]
    fn beside_others_the_lock_is_free_most_of_the_time_and_under_load_two_fifths() {
        let shares = [1, 2, 3, 6, 30].map(|held| {
            let pause = pause_after(ms(held));
            pause.as_secs_f64() / (pause + ms(held)).as_secs_f64()
        });
        assert!(shares.iter().all(|free| *free >= 0.399), "{shares:?}");
        assert!(shares[..2].iter().all(|free| *free >= 0.599), "{shares:?}");
    }

    #[test]
    fn small_batches_are_gathered_for_a_millisecond_and_no_pause_is_endless() {
        assert_eq!(pause_after(Duration::from_micros(50)), ms(1));
        assert_eq!(pause_after(Duration::from_secs(60)), ms(150));
    }

    #[test]
    fn a_pause_that_has_passed_while_there_was_nothing_to_do_is_not_made_up_for() {
        let (mut pacer, now) = (Pacer::default(), Instant::now());
        pacer.foreign_commit(now);
        pacer.released(now, ms(2));
        assert_eq!(pacer.pause(now + ms(1)), Some(ms(2)));
        assert_eq!(pacer.pause(now + ms(3)), None);
    }
}
