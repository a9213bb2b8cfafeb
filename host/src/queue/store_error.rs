//! Why a call of the store failed.

use thiserror::Error;

/// Why a call failed. Nothing was written.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// Another process holds the database's lock. A retry may help.
    #[error("the database is locked by another process")]
    Busy,
    /// The disk is full. A retry helps once there is space.
    #[error("no space is left for the database: {0}")]
    Full(String),
    /// The database cannot be written.
    #[error("the queue cannot be written: {0}")]
    ReadOnly(String),
    /// A row violates a constraint of the table. A retry never helps.
    #[error("the table refuses it: {0}")]
    Refused(String),
    /// The disk, the file or SQLite itself failed.
    #[error("the database failed: {0}")]
    Failed(String),
    /// The database was deleted or replaced while it was open.
    #[error("`{0}` was deleted or replaced while it was open; anything written now is lost")]
    Gone(String),
    /// The database is inconsistent: a disk error, or something other than SQLite wrote to the file.
    #[error("the database is damaged: {0}\nhint: stop every program that uses it, and restore a backup")]
    Corrupt(String),
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same call may succeed later, with time or free disk space.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy | Self::Full(_) | Self::ReadOnly(_) | Self::Failed(_))
    }

    /// Whether anything written from now on would be lost, so that a daemon must end.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Corrupt(_))
    }
}
