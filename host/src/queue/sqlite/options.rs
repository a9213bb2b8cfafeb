//! Where a queue is and how it is opened.

use std::path::PathBuf;
use std::time::Duration;

use super::table_name::TableName;

/// Where the queue is and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// The file.
    pub database: PathBuf,
    /// The table in it. Default: `jobs`.
    pub table: TableName,
    /// What an acknowledged write survives. Default: [`Durability::Full`].
    pub durability: Durability,
    /// How long a write waits for another process that holds the lock, before it fails with
    /// [`StoreError::Busy`](crate::queue::StoreError::Busy). Default: `None`, without limit; a warning is logged every 5 s.
    pub busy_timeout: Option<Duration>,
}

impl QueueOptions {
    /// The queue `jobs` in this file, with everything else at its default.
    pub fn new(database: impl Into<PathBuf>) -> Self {
        Self {
            database: database.into(),
            table: TableName::default(),
            durability: Durability::Full,
            busy_timeout: None,
        }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut.
    Full,
    /// A crash of the process.
    Normal,
}

/// Whether to create what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Creates the file and the table.
    Create,
    /// Requires the file and the table to exist.
    Existing,
}
