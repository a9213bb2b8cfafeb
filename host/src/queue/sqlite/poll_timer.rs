//! When to look whether somebody has committed. Decides and does nothing: instants go in, the next look comes out.
//!
//! A commit is announced by a write to the log, but visible only a little later: looks follow each write ever more slowly.
//! A queue that changes all the time is looked at a hundred times a second and no more.

use std::time::{Duration, Instant};

/// The pauses before the looks that follow a write. Between the write and the commit is the disk, which may take its time.
const RUNGS: [Duration; 11] = [
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

/// Where it goes on after a change: what was written may belong to a commit that is still to come, but hardly ever does.
const AFTER_A_CHANGE: std::ops::Range<usize> = 6..8;

/// Where it stays while more is being written: a large transaction is under way.
const LONG_TRANSACTION: usize = 6;

/// The pause after a change; twice as long after each that follows without rest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// So many changes without a write that was seen mean that writes are not seen here.
const FORGIVEN: u32 = 3;

/// How often those who wait want it looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Where writes are not seen.
    pub(super) poll: Duration,
    /// Where they are.
    pub(super) net: Duration,
}

/// What a look has shown beside the change itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing.
    Usual,
    /// From here on it is looked at the pace of polling.
    WritesAreNotSeen,
}

/// The state between two looks.
#[derive(Debug)]
pub(super) struct PollTimer {
    /// Whether writes are seen.
    seen: bool,
    /// Changes that no write announced.
    missed: u32,
    /// Whether a write was seen that no change has explained.
    announced: bool,
    rung: Option<usize>,
    /// Where the looks end.
    end: usize,
    /// Whether the last look found nothing written: what is written then is the start of something.
    quiet: bool,
    /// The pause after the last change, while it lasts.
    pause: Option<Duration>,
    looked: Option<Instant>,
    /// `None`: one `pace` after the last look.
    due: Option<Instant>,
}

impl PollTimer {
    pub(super) const fn new(seen: bool) -> Self {
        Self {
            seen,
            missed: 0,
            announced: false,
            rung: None,
            end: RUNGS.len(),
            quiet: true,
            pause: None,
            looked: None,
            due: None,
        }
    }

    /// When to look, for those who want it at this pace.
    pub(super) fn due(&self, pace: Pace, now: Instant) -> Instant {
        let pace = if self.seen { pace.net } else { pace.poll };
        let looked = self.looked.and_then(|looked| looked.checked_add(pace));
        self.due.or(looked).unwrap_or(now)
    }

    /// Whether a write before that is worth knowing.
    pub(super) const fn listens(&self) -> bool {
        self.seen && self.quiet && self.pause.is_none()
    }

    /// Somebody waits who did not before: what has changed meanwhile is theirs.
    pub(super) fn asked(&mut self, now: Instant) {
        if self.pause.is_none() {
            self.due = Some(now);
        }
    }

    /// Something is being written.
    pub(super) fn written(&mut self, now: Instant) {
        self.quiet = false;
        (self.rung, self.end) = (Some(1), RUNGS.len());
        self.due = Some(now + RUNGS[0]);
    }

    /// It was looked, with what was written since the last look and whether there was a commit.
    pub(super) fn looked(&mut self, now: Instant, written: bool, changed: bool) -> Finding {
        let first = self.looked.replace(now).is_none();
        self.announced |= written;
        self.quiet = !written;
        if !changed {
            self.pause = None;
            self.step(now, written);
            return Finding::Usual;
        }
        let unseen = self.seen && !first && !std::mem::replace(&mut self.announced, written);
        let pause = self.pause.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some(pause);
        (self.rung, self.end) = (written.then_some(AFTER_A_CHANGE.start), AFTER_A_CHANGE.end);
        self.due = Some(now + pause);
        self.missed += u32::from(unseen);
        if self.seen && self.missed >= FORGIVEN {
            self.seen = false;
            return Finding::WritesAreNotSeen;
        }
        Finding::Usual
    }

    /// The next look after one that has shown nothing.
    fn step(&mut self, now: Instant, written: bool) {
        let rung = match (self.rung, written) {
            (None, false) => None,
            (None, true) => {
                self.end = RUNGS.len();
                Some(0)
            }
            (Some(rung), true) => Some(rung.min(LONG_TRANSACTION)),
            (Some(rung), false) => Some(rung),
        };
        let pause = rung.filter(|rung| self.seen && *rung < self.end).and_then(|rung| RUNGS.get(rung));
        self.due = pause.map(|pause| now + *pause);
        self.rung = rung.filter(|_| pause.is_some()).map(|rung| rung + 1);
    }

    /// It could not be looked: again after `pause`.
    pub(super) fn failed(&mut self, now: Instant, pause: Duration) {
        self.rung = None;
        self.pause = None;
        self.due = Some(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { poll: Duration::from_millis(50), net: Duration::from_secs(1) };

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A cadence that has looked once at `now` and is at rest.
    fn at_rest(now: Instant) -> PollTimer {
        let mut cadence = PollTimer::new(true);
        assert_eq!(cadence.due(PACE, now), now, "the first look is at once");
        cadence.looked(now, false, true);
        cadence.looked(now + ms(1), false, false);
        assert!(cadence.listens());
        cadence
    }

    #[test]
    fn at_rest_it_looks_at_the_net_or_where_nothing_is_seen_at_the_poll() {
        let now = Instant::now();
        assert_eq!(at_rest(now).due(PACE, now), now + ms(1) + PACE.net);
        let mut blind = PollTimer::new(false);
        blind.looked(now, false, false);
        assert_eq!(blind.due(PACE, now), now + PACE.poll);
        assert!(!blind.listens());
    }

    #[test]
    fn looks_follow_a_write_ever_more_slowly_and_end() {
        let start = Instant::now();
        let mut cadence = at_rest(start);
        cadence.written(start + ms(10));
        let mut looks = Vec::new();
        while cadence.due.is_some() {
            let due = cadence.due(PACE, start);
            looks.push((due - start - ms(10)).as_micros());
            cadence.looked(due, false, false);
        }
        assert_eq!(looks, [300, 800, 1800, 3800, 7800, 15_800, 31_800, 95_800, 223_800, 479_800, 991_800]);
    }

    #[test]
    fn a_transaction_that_goes_on_writing_is_looked_at_until_it_ends() {
        let start = Instant::now();
        let mut cadence = at_rest(start);
        cadence.written(start);
        for _ in 0..100 {
            assert!(!cadence.listens());
            cadence.looked(cadence.due(PACE, start), true, false);
        }
        let last = cadence.due(PACE, start);
        cadence.looked(last, true, false);
        assert_eq!(cadence.due(PACE, start) - last, ms(16), "slowly, but before the net");
    }

    #[test]
    fn changes_without_rest_are_told_a_hundred_times_a_second() {
        let start = Instant::now();
        let mut cadence = at_rest(start);
        cadence.written(start);
        let mut looks = Vec::new();
        for _ in 0..8 {
            let due = cadence.due(PACE, start);
            cadence.looked(due, true, true);
            cadence.asked(due);
            looks.push((cadence.due(PACE, start) - due).as_millis());
        }
        assert_eq!(looks, [1, 2, 4, 8, 10, 10, 10, 10]);
        let due = cadence.due(PACE, start);
        cadence.looked(due, false, false);
        let due = cadence.due(PACE, start);
        cadence.looked(due, true, true);
        assert_eq!(cadence.due(PACE, start) - due, ms(1), "after a rest it is quick again");
    }

    #[test]
    fn a_commit_whose_write_was_seen_with_the_one_before_is_looked_for() {
        let start = Instant::now();
        let mut cadence = at_rest(start);
        cadence.written(start);
        cadence.looked(cadence.due(PACE, start), true, true);
        cadence.looked(cadence.due(PACE, start), false, false);
        assert!(cadence.due.is_some(), "what was written may be another's");
        cadence.looked(cadence.due(PACE, start), false, false);
        cadence.written(start + ms(20));
        assert!(cadence.due(PACE, start) < start + ms(21), "and something new is no less urgent for that");
    }

    #[test]
    fn who_comes_to_wait_gets_a_look_at_once() {
        let start = Instant::now();
        let mut cadence = at_rest(start);
        cadence.asked(start + ms(5));
        assert_eq!(cadence.due(PACE, start), start + ms(5));
    }

    #[test]
    fn changes_that_no_write_announced_end_the_trust_in_the_watch() {
        let mut now = Instant::now();
        let mut cadence = at_rest(now);
        let mut findings = Vec::new();
        for _ in 0..4 {
            now += PACE.net;
            findings.push(cadence.looked(now, false, true));
            cadence.looked(now + ms(1), false, false);
        }
        let usual = Finding::Usual;
        assert_eq!(findings, [usual, usual, Finding::WritesAreNotSeen, usual], "it is said once");
        assert_eq!(cadence.due(PACE, now), now + ms(1) + PACE.poll);
    }

    #[test]
    fn a_slow_commit_is_not_held_against_the_watch() {
        let start = Instant::now();
        let mut cadence = at_rest(start);
        for _ in 0..9 {
            cadence.written(start);
            cadence.looked(cadence.due(PACE, start), true, false);
            while cadence.due.is_some() {
                cadence.looked(cadence.due(PACE, start), false, false);
            }
            assert_eq!(cadence.looked(cadence.due(PACE, start), false, true), Finding::Usual);
            cadence.looked(cadence.due(PACE, start), false, false);
        }
        assert!(cadence.listens(), "the write was seen, long before the commit");
    }
}
