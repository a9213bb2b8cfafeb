//! When the change watcher looks for a commit. Decides, does nothing: times go in, the time of the next look comes out.
//!
//! A write to the log comes shortly before its commit is visible, so several looks follow each write, with growing delays.
//! A queue that changes all the time is looked at no more than a hundred times a second.

use std::time::{Duration, Instant};

/// The delays before the looks that follow a write. The disk may take its time between the write and the commit.
const DELAYS: [Duration; 11] = [
    Duration::from_micros(300),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(16),
    Duration::from_millis(64),
    Duration::from_millis(128),
    Duration::from_millis(256),
    Duration::from_millis(512),
];

/// The delays used after a change: a write may belong to a later commit, but hardly ever does.
const AFTER_A_CHANGE: std::ops::Range<usize> = 6..8;

/// The delay that is repeated while a large transaction keeps writing.
const LONG_TRANSACTION: usize = 6;

/// The pause after a change; doubled after each change that follows at once.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// After this many changes without a write event, events are not trusted.
const MAX_MISSED: u32 = 3;

/// The time between regular looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PollIntervals {
    /// If write events are not available or not reliable.
    pub(super) polled: Duration,
    /// If they are.
    pub(super) watched: Duration,
}

/// What a look has shown about write events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteEvents {
    /// Nothing new.
    Unchanged,
    /// Some are missing: from now on the timer polls.
    Unreliable,
}

/// The state between two looks.
#[derive(Debug)]
pub(super) struct PollTimer {
    /// Whether write events are available and reliable.
    watched: bool,
    /// Changes without a write event.
    missed: u32,
    /// Whether there was a write event without a change so far.
    announced: bool,
    /// Index of the next delay.
    step: Option<usize>,
    /// Where the delays end.
    end: usize,
    /// Whether there was no write event before the last look: the next one begins a transaction.
    quiet: bool,
    /// The pause after the last change, while it lasts.
    pause: Option<Duration>,
    looked: Option<Instant>,
    /// `None`: one interval after the last look.
    due: Option<Instant>,
}

impl PollTimer {
    pub(super) const fn new(watched: bool) -> Self {
        Self {
            watched,
            missed: 0,
            announced: false,
            step: None,
            end: DELAYS.len(),
            quiet: true,
            pause: None,
            looked: None,
            due: None,
        }
    }

    /// When to look next.
    pub(super) fn due(&self, intervals: PollIntervals, now: Instant) -> Instant {
        let interval = if self.watched { intervals.watched } else { intervals.polled };
        let looked = self.looked.and_then(|looked| looked.checked_add(interval));
        self.due.or(looked).unwrap_or(now)
    }

    /// Whether to wake up early for a write event.
    pub(super) const fn waits_for_writes(&self) -> bool {
        self.watched && self.quiet && self.pause.is_none()
    }

    /// A new request: it wants earlier changes too.
    pub(super) fn requested(&mut self, now: Instant) {
        if self.pause.is_none() {
            self.due = Some(now);
        }
    }

    /// There was a write event.
    pub(super) fn written(&mut self, now: Instant) {
        self.quiet = false;
        (self.step, self.end) = (Some(1), DELAYS.len());
        self.due = Some(now + DELAYS[0]);
    }

    /// The result of a look: whether there was a write event since the last one, and whether there was a commit.
    pub(super) fn looked(&mut self, now: Instant, written: bool, changed: bool) -> WriteEvents {
        let first = self.looked.replace(now).is_none();
        self.announced |= written;
        self.quiet = !written;
        if !changed {
            self.pause = None;
            self.schedule(now, written);
            return WriteEvents::Unchanged;
        }
        let missed = self.watched && !first && !std::mem::replace(&mut self.announced, written);
        let pause = self.pause.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some(pause);
        (self.step, self.end) = (written.then_some(AFTER_A_CHANGE.start), AFTER_A_CHANGE.end);
        self.due = Some(now + pause);
        self.missed += u32::from(missed);
        if self.watched && self.missed >= MAX_MISSED {
            self.watched = false;
            return WriteEvents::Unreliable;
        }
        WriteEvents::Unchanged
    }

    /// Schedules the next look after one without a commit.
    fn schedule(&mut self, now: Instant, written: bool) {
        let step = match (self.step, written) {
            (None, false) => None,
            (None, true) => {
                self.end = DELAYS.len();
                Some(0)
            }
            (Some(step), true) => Some(step.min(LONG_TRANSACTION)),
            (Some(step), false) => Some(step),
        };
        let delay = step.filter(|step| self.watched && *step < self.end).and_then(|step| DELAYS.get(step));
        self.due = delay.map(|delay| now + *delay);
        self.step = step.filter(|_| delay.is_some()).map(|step| step + 1);
    }

    /// A look failed: the next one is after `pause`.
    pub(super) fn failed(&mut self, now: Instant, pause: Duration) {
        self.step = None;
        self.pause = None;
        self.due = Some(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVALS: PollIntervals =
        PollIntervals { polled: Duration::from_millis(50), watched: Duration::from_secs(1) };

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A timer that has looked once at `now` and is idle.
    fn idle(now: Instant) -> PollTimer {
        let mut timer = PollTimer::new(true);
        assert_eq!(timer.due(INTERVALS, now), now, "the first look is at once");
        timer.looked(now, false, true);
        timer.looked(now + ms(1), false, false);
        assert!(timer.waits_for_writes());
        timer
    }

    #[test]
    fn an_idle_timer_looks_at_its_interval() {
        let now = Instant::now();
        assert_eq!(idle(now).due(INTERVALS, now), now + ms(1) + INTERVALS.watched);
        let mut polling = PollTimer::new(false);
        polling.looked(now, false, false);
        assert_eq!(polling.due(INTERVALS, now), now + INTERVALS.polled);
        assert!(!polling.waits_for_writes());
    }

    #[test]
    fn looks_follow_a_write_with_growing_delays_and_end() {
        let start = Instant::now();
        let mut timer = idle(start);
        timer.written(start + ms(10));
        let mut looks = Vec::new();
        while timer.due.is_some() {
            let due = timer.due(INTERVALS, start);
            looks.push((due - start - ms(10)).as_micros());
            timer.looked(due, false, false);
        }
        assert_eq!(looks, [300, 800, 1800, 3800, 7800, 15_800, 31_800, 95_800, 223_800, 479_800, 991_800]);
    }

    #[test]
    fn a_transaction_that_keeps_writing_is_looked_at_until_it_ends() {
        let start = Instant::now();
        let mut timer = idle(start);
        timer.written(start);
        for _ in 0..100 {
            assert!(!timer.waits_for_writes());
            timer.looked(timer.due(INTERVALS, start), true, false);
        }
        let last = timer.due(INTERVALS, start);
        timer.looked(last, true, false);
        assert_eq!(timer.due(INTERVALS, start) - last, ms(16), "slowly, but more often than the interval");
    }

    #[test]
    fn a_queue_that_changes_all_the_time_is_looked_at_a_hundred_times_a_second() {
        let start = Instant::now();
        let mut timer = idle(start);
        timer.written(start);
        let mut looks = Vec::new();
        for _ in 0..8 {
            let due = timer.due(INTERVALS, start);
            timer.looked(due, true, true);
            timer.requested(due);
            looks.push((timer.due(INTERVALS, start) - due).as_millis());
        }
        assert_eq!(looks, [1, 2, 4, 8, 10, 10, 10, 10]);
        let due = timer.due(INTERVALS, start);
        timer.looked(due, false, false);
        let due = timer.due(INTERVALS, start);
        timer.looked(due, true, true);
        assert_eq!(timer.due(INTERVALS, start) - due, ms(1), "after an idle look it is quick again");
    }

    #[test]
    fn a_write_event_that_came_with_the_previous_commit_is_followed_up() {
        let start = Instant::now();
        let mut timer = idle(start);
        timer.written(start);
        timer.looked(timer.due(INTERVALS, start), true, true);
        timer.looked(timer.due(INTERVALS, start), false, false);
        assert!(timer.due.is_some(), "the write may belong to another commit");
        timer.looked(timer.due(INTERVALS, start), false, false);
        timer.written(start + ms(20));
        assert!(timer.due(INTERVALS, start) < start + ms(21), "and a new write is looked at just as quickly");
    }

    #[test]
    fn a_new_request_is_served_at_once() {
        let start = Instant::now();
        let mut timer = idle(start);
        timer.requested(start + ms(5));
        assert_eq!(timer.due(INTERVALS, start), start + ms(5));
    }

    #[test]
    fn after_three_changes_without_a_write_event_the_timer_polls() {
        let mut now = Instant::now();
        let mut timer = idle(now);
        let mut results = Vec::new();
        for _ in 0..4 {
            now += INTERVALS.watched;
            results.push(timer.looked(now, false, true));
            timer.looked(now + ms(1), false, false);
        }
        let unchanged = WriteEvents::Unchanged;
        assert_eq!(results, [unchanged, unchanged, WriteEvents::Unreliable, unchanged], "reported once");
        assert_eq!(timer.due(INTERVALS, now), now + ms(1) + INTERVALS.polled);
    }

    #[test]
    fn a_slow_commit_does_not_count_as_missed() {
        let start = Instant::now();
        let mut timer = idle(start);
        for _ in 0..9 {
            timer.written(start);
            timer.looked(timer.due(INTERVALS, start), true, false);
            while timer.due.is_some() {
                timer.looked(timer.due(INTERVALS, start), false, false);
            }
            assert_eq!(timer.looked(timer.due(INTERVALS, start), false, true), WriteEvents::Unchanged);
            timer.looked(timer.due(INTERVALS, start), false, false);
        }
        assert!(timer.waits_for_writes(), "the event came, long before the commit");
    }
}
