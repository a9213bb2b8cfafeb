//! How large the write-ahead log is, and whether a checkpoint is worth its cost. Decides, does nothing.

use std::fmt;

use rusqlite::{Result, Row};

/// Measures the log without touching it, in some 2 µs.
pub(super) const MEASURE: &str = "PRAGMA wal_checkpoint(NOOP)";

/// Checkpoints what no reader needs, and waits for nobody.
pub(super) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// A checkpoint pays from here on: 4 MB, SQLite's default.
const WORTH_IT: u32 = 1000;

/// A log of this length has not been reset for a while. A smaller checkpoint pays then, because it allows the reset.
const OVERDUE: u32 = 4 * WORTH_IT;

/// The writer leaves more than this to the checkpoint thread: 16 MB take a busy disk a tenth of a second.
const LARGE: u32 = 4 * WORTH_IT;

/// The size of the log, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalSize {
    length: u32,
    checkpointed: u32,
}

/// What to do about the log after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointAdvice {
    /// Nothing yet.
    Wait,
    /// The writer checkpoints.
    Checkpoint,
    /// The checkpoint thread does it.
    Delegate,
}

impl WalSize {
    /// Reads the row that `PRAGMA wal_checkpoint` returns.
    pub(super) fn read(row: &Row<'_>) -> Result<Self> {
        let pages = |column| row.get(column).map(|pages: i64| u32::try_from(pages).unwrap_or(0));
        Ok(Self { length: pages(1)?, checkpointed: pages(2)? })
    }

    #[cfg(test)]
    pub(super) const fn new(length: u32, checkpointed: u32) -> Self {
        Self { length, checkpointed }
    }

    /// Whether there was a checkpoint since `before`, even a partial one. A reset of the log implies one.
    pub(super) const fn shows_a_checkpoint_since(self, before: Self) -> bool {
        self.checkpointed != before.checkpointed || self.length < before.length
    }

    /// Whether more pages are checkpointed than in `before`.
    pub(super) const fn is_further_than(self, before: Self) -> bool {
        self.checkpointed > before.checkpointed
    }

    /// Pages that are not in the database yet.
    const fn left(self) -> u32 {
        self.length.saturating_sub(self.checkpointed)
    }

    pub(super) const fn is_large(self) -> bool {
        self.left() > LARGE
    }

    /// What to do after a commit.
    pub(super) const fn advice(self) -> CheckpointAdvice {
        let worth_it = if self.length >= OVERDUE { WORTH_IT / 10 } else { WORTH_IT };
        match self.left() {
            left if left > LARGE => CheckpointAdvice::Delegate,
            left if left >= worth_it => CheckpointAdvice::Checkpoint,
            _ => CheckpointAdvice::Wait,
        }
    }
}

impl fmt::Display for WalSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pages left", self.left(), self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_checkpoints_what_is_worth_it_and_delegates_what_is_large() {
        let advice = |length, checkpointed| WalSize::new(length, checkpointed).advice();
        assert_eq!(advice(999, 0), CheckpointAdvice::Wait);
        assert_eq!(advice(1000, 0), CheckpointAdvice::Checkpoint);
        assert_eq!(advice(1999, 1000), CheckpointAdvice::Wait, "a reader kept the log from being reset");
        assert_eq!(advice(4100, 4000), CheckpointAdvice::Checkpoint, "overdue");
        assert_eq!(advice(4000, 0), CheckpointAdvice::Checkpoint);
        assert_eq!(advice(4001, 0), CheckpointAdvice::Delegate);
        assert_eq!(advice(1_000_000, 998_000), CheckpointAdvice::Checkpoint, "the thread has done most of it");
    }
}
