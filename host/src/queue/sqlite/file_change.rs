//! Detects that something other than SQLite writes to the database file. Decides, does nothing.
//!
//! In WAL mode only a checkpoint changes the file. Our own shows in the size of the log; one by another process comes with
//! its commits, or shows there too. A file that changes without either was copied over, or only touched.

use std::time::{Duration, Instant};

use super::wal::WalSize;

/// When a file was modified, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    pub(super) modified: (i64, i64),
    pub(super) size: u64,
}

/// What a look at the file calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileChange {
    /// Nothing: the file did not change, or a checkpoint explains the change.
    Explained,
    /// Waiting: a checkpoint by another process may be under way.
    Unclear,
    /// The file has to be checked. `resized`: whether its size changed.
    Unexplained { resized: bool },
}

/// How long another process's checkpoint may go on before it shows in the log.
const GRACE: Duration = Duration::from_secs(4);

/// After this many false alarms, modification times mean nothing on this file system, and the file is checked no more.
const MAX_FALSE_ALARMS: u32 = 3;

/// What is known since the last stamp that was explained.
#[derive(Debug, Default)]
pub(super) struct FileChangeDetector {
    last: Option<FileStamp>,
    log: Option<WalSize>,
    /// Whether there may have been a checkpoint since.
    explained: bool,
    unclear_since: Option<Instant>,
    alarms: u32,
}

impl FileChangeDetector {
    /// The log after one of our commits, and whether others have committed since the previous one.
    pub(super) fn committed(&mut self, log: WalSize, others: bool) {
        let before = self.log.replace(log);
        let checkpointed = before.is_none_or(|before| log.shows_a_checkpoint_since(before));
        // A checkpoint of a large log takes long, and shows only at its end.
        self.explained |= others || checkpointed || log.is_large();
    }

    /// The file as it is `now`.
    pub(super) fn look(&mut self, now: Instant, stamp: FileStamp) -> FileChange {
        let explained = std::mem::take(&mut self.explained) || self.alarms >= MAX_FALSE_ALARMS;
        let Some(last) = self.last.filter(|last| *last != stamp && !explained) else {
            self.last = Some(stamp);
            self.unclear_since = None;
            return FileChange::Explained;
        };
        if now - *self.unclear_since.get_or_insert(now) < GRACE {
            return FileChange::Unclear;
        }
        self.last = Some(stamp);
        self.unclear_since = None;
        self.alarms += 1;
        FileChange::Unexplained { resized: stamp.size != last.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log, whether others have committed, and the file's modification time.
    type Step = ((u32, u32), bool, i64);

    fn changes(steps: &[Step]) -> Vec<FileChange> {
        let (mut detector, mut now) = (FileChangeDetector::default(), Instant::now());
        let mut look = |((length, checkpointed), others, time): &Step| {
            now += Duration::from_secs(4);
            detector.committed(WalSize::new(*length, *checkpointed), *others);
            detector.look(now, FileStamp { modified: (*time, 0), size: 4 })
        };
        steps.iter().map(&mut look).collect()
    }

    const EXPLAINED: FileChange = FileChange::Explained;

    #[test]
    fn checkpoints_explain_every_change() {
        let ours = [((10, 0), false, 1), ((900, 0), false, 1), ((1000, 1000), false, 2), ((20, 0), false, 3)];
        assert_eq!(changes(&ours), [EXPLAINED; 4]);
        let reset = [((10, 0), false, 1), ((30, 0), true, 2), ((40, 0), true, 3)];
        assert_eq!(changes(&reset), [EXPLAINED; 3], "others wrote, and may have reset the log");
        let large = [((9000, 0), false, 1), ((9001, 0), false, 2), ((9002, 0), false, 3), ((9003, 0), false, 4)];
        assert_eq!(changes(&large), [EXPLAINED; 4], "it is being checkpointed");
    }

    #[test]
    fn a_checkpoint_that_is_under_way_gets_time_to_finish() {
        let steps = [((500, 0), false, 1), ((501, 0), false, 2), ((502, 500), false, 3), ((503, 500), false, 3)];
        assert_eq!(changes(&steps), [EXPLAINED, FileChange::Unclear, EXPLAINED, EXPLAINED]);
    }

    #[test]
    fn a_change_without_a_checkpoint_is_unexplained() {
        let steps = [((10, 0), false, 1), ((11, 0), false, 2), ((12, 0), false, 2), ((13, 0), false, 2)];
        let unexplained = FileChange::Unexplained { resized: false };
        assert_eq!(changes(&steps), [EXPLAINED, FileChange::Unclear, unexplained, EXPLAINED]);
    }

    #[test]
    fn a_new_size_is_reported() {
        let (mut detector, now) = (FileChangeDetector::default(), Instant::now());
        let mut look = |after, time, size| {
            detector.committed(WalSize::new(1, 0), false);
            detector.look(now + Duration::from_millis(after), FileStamp { modified: (time, 0), size })
        };
        assert_eq!(look(0, 1, 8), EXPLAINED);
        assert_eq!(look(1, 2, 4), FileChange::Unclear);
        assert_eq!(look(3999, 2, 4), FileChange::Unclear, "frequent commits don't shorten the grace");
        assert_eq!(look(4001, 2, 4), FileChange::Unexplained { resized: true });
    }

    #[test]
    fn after_three_false_alarms_modification_times_are_ignored() {
        let steps: Vec<Step> = (0..20).map(|time| ((10, 0), false, time)).collect();
        let alarms = changes(&steps).into_iter().filter(|one| matches!(one, FileChange::Unexplained { .. })).count();
        assert_eq!(alarms, 3);
    }
}
