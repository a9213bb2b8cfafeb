//! Why a queue cannot be opened, with a hint where the user can do something about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::lock_wait::LockWaitError;
use super::table_name::TableName;

/// Why a queue cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("there is no database `{}`\nhint: `jobq run` and `jobq enqueue` create it", .database.display())]
    NoDatabase {
        /// The file.
        database: PathBuf,
    },
    /// The file has no such queue.
    #[error("the database has no queue `{table}`\nhint: `jobq run` and `jobq enqueue` create it")]
    NoTable {
        /// The queue's table.
        table: TableName,
    },
    /// The directory for the database is missing.
    #[error("there is no directory `{}` for the database\nhint: create it, or set `queue.database`", .directory.display())]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// It is a directory or a device.
    #[error("`{}` is not a file\nhint: `queue.database` names the file itself", .database.display())]
    NotAFile {
        /// The path.
        database: PathBuf,
    },
    /// It is a file in another format.
    #[error("`{}` is not a SQLite database\nhint: set `queue.database` to another file", .database.display())]
    NotADatabase {
        /// The file.
        database: PathBuf,
    },
    /// It cannot be written, or files cannot be created beside it.
    #[error("`{}` cannot be written\nhint: its directory must be writable too, for the -wal and -shm files", .database.display())]
    ReadOnly {
        /// The file.
        database: PathBuf,
    },
    /// A table, view or index of that name exists and is not a queue.
    #[error("`{table}` exists in the database and is not a queue\nhint: set `queue.table` to an unused name")]
    ForeignTable {
        /// The name.
        table: TableName,
    },
    /// The table of the queue was dropped.
    #[error(
        "the table of queue `{table}` was dropped\n\
         hint: restore it, or drop the other tables of the queue (`{table}__…`) and delete its row in `jobq_queues`"
    )]
    DroppedTable {
        /// The queue's table.
        table: TableName,
    },
    /// A newer version of jobq migrated the table.
    #[error(
        "queue `{table}` has schema version {version}; this jobq supports versions up to {known}\nhint: upgrade jobq"
    )]
    Newer {
        /// The queue's table.
        table: TableName,
        /// Its version.
        version: i64,
        /// The newest version that this program supports.
        known: i64,
    },
    /// Another process held the lock for longer than `busy_timeout`.
    #[error("the database is locked by another process")]
    Busy,
    /// The linked SQLite has a bug that can corrupt a file.
    #[error("SQLite {found} is too old: versions before 3.51.3 can corrupt a database")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// SQLite did not accept a setting.
    #[error("SQLite did not accept `PRAGMA {pragma} = {wanted}`; the value is {found}")]
    Pragma {
        /// The setting.
        pragma: &'static str,
        /// The wanted value.
        wanted: String,
        /// The actual value.
        found: String,
    },
    /// Any other error of SQLite.
    #[error("the database cannot be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file or a thread cannot be created.
    #[error("the database cannot be opened: {0}")]
    Io(#[from] io::Error),
}

impl From<LockWaitError> for OpenError {
    fn from(error: LockWaitError) -> Self {
        match error {
            LockWaitError::Busy => Self::Busy,
            LockWaitError::Sqlite(error) => Self::Sqlite(error),
        }
    }
}
