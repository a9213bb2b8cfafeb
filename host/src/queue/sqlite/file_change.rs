//! Whether somebody who is not SQLite writes to the database's file. Decides and does nothing.
//!
//! In WAL mode only a write-back of the log changes the file. One of ours shows in the log, one of others comes with their
//! commits or shows there too. A file that changes without any of that has been copied over, or only touched.

use std::time::{Duration, Instant};

use super::checkpoint::Log;

/// When a file was written to, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) modified: (i64, i64),
    pub(super) size: u64,
}

/// What follows from a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// Nothing.
    None,
    /// Somebody may be writing the log back at this moment; it will show.
    Unclear,
    /// The file has to be examined; and whether its size has changed.
    Examine { resized: bool },
}

/// How long a write-back may take that shows in nothing else.
const BENEFIT_OF_DOUBT: Duration = Duration::from_secs(4);

/// So many suspicions that came to nothing mean that this file system's times say nothing.
const FORGIVEN: u32 = 3;

/// What is known since the last stamp that was in order.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    last: Option<Stamp>,
    log: Option<Log>,
    /// Whether the log may have been written back since.
    explained: bool,
    unclear: Option<Instant>,
    examined: u32,
}

impl Stamps {
    /// The log after a commit of ours, and whether others have committed since the one before.
    pub(super) fn committed(&mut self, log: Log, others: bool) {
        let before = self.log.replace(log);
        let written_back = before.is_none_or(|before| log.shows_a_write_back_since(before));
        // A long one takes long to write back, and shows it only in the end.
        self.explained |= others || written_back || log.is_long();
    }

    /// The file at this moment.
    pub(super) fn look(&mut self, now: Instant, stamp: Stamp) -> Suspicion {
        let explained = std::mem::take(&mut self.explained) || self.examined >= FORGIVEN;
        let Some(last) = self.last.filter(|last| *last != stamp && !explained) else {
            self.last = Some(stamp);
            self.unclear = None;
            return Suspicion::None;
        };
        if now - *self.unclear.get_or_insert(now) < BENEFIT_OF_DOUBT {
            return Suspicion::Unclear;
        }
        self.last = Some(stamp);
        self.unclear = None;
        self.examined += 1;
        Suspicion::Examine { resized: stamp.size != last.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log, whether others have committed, and when the file was written to.
    type Step = ((u32, u32), bool, i64);

    fn suspicions(steps: &[Step]) -> Vec<Suspicion> {
        let (mut stamps, mut now) = (Stamps::default(), Instant::now());
        let mut look = |((length, written_back), others, time): &Step| {
            now += Duration::from_secs(4);
            stamps.committed(Log::new(*length, *written_back), *others);
            stamps.look(now, Stamp { modified: (*time, 0), size: 4 })
        };
        steps.iter().map(&mut look).collect()
    }

    const NONE: Suspicion = Suspicion::None;

    #[test]
    fn write_backs_explain_every_change() {
        let ours = [((10, 0), false, 1), ((900, 0), false, 1), ((1000, 1000), false, 2), ((20, 0), false, 3)];
        assert_eq!(suspicions(&ours), [NONE; 4]);
        let anew = [((10, 0), false, 1), ((30, 0), true, 2), ((40, 0), true, 3)];
        assert_eq!(suspicions(&anew), [NONE; 3], "others wrote, and may have begun the log anew");
        let long = [((9000, 0), false, 1), ((9001, 0), false, 2), ((9002, 0), false, 3), ((9003, 0), false, 4)];
        assert_eq!(suspicions(&long), [NONE; 4], "it is being written back");
    }

    #[test]
    fn a_write_back_that_is_under_way_is_waited_for() {
        let steps = [((500, 0), false, 1), ((501, 0), false, 2), ((502, 500), false, 3), ((503, 500), false, 3)];
        assert_eq!(suspicions(&steps), [NONE, Suspicion::Unclear, NONE, NONE]);
    }

    #[test]
    fn a_file_that_changes_while_nothing_is_written_back_is_examined() {
        let steps = [((10, 0), false, 1), ((11, 0), false, 2), ((12, 0), false, 2), ((13, 0), false, 2)];
        assert_eq!(suspicions(&steps), [NONE, Suspicion::Unclear, Suspicion::Examine { resized: false }, NONE]);
    }

    #[test]
    fn one_of_another_size_is_told_apart() {
        let (mut stamps, now) = (Stamps::default(), Instant::now());
        let mut look = |after, time, size| {
            stamps.committed(Log::new(1, 0), false);
            stamps.look(now + Duration::from_millis(after), Stamp { modified: (time, 0), size })
        };
        assert_eq!(look(0, 1, 8), NONE);
        assert_eq!(look(1, 2, 4), Suspicion::Unclear);
        assert_eq!(look(3999, 2, 4), Suspicion::Unclear, "a commit a millisecond does not make it clear");
        assert_eq!(look(4001, 2, 4), Suspicion::Examine { resized: true });
    }

    #[test]
    fn times_that_change_all_the_time_are_suspected_for_a_while_only() {
        let steps: Vec<Step> = (0..20).map(|time| ((10, 0), false, time)).collect();
        let examined = suspicions(&steps).into_iter().filter(|one| matches!(one, Suspicion::Examine { .. })).count();
        assert_eq!(examined, 3);
    }
}
