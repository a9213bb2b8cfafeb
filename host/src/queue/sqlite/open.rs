//! Opens the file: checks what is there, sets the pragmas and reads each of them back.
//!
//! Nothing here or elsewhere opens the file but SQLite: closing any other descriptor on it would drop SQLite's locks.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Result};
use thiserror::Error;

use super::lock_wait::{GivenUp, LockWait};
use super::{Durability, QueueOptions, TableName, migrations};

/// Whether to make what is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Makes the file and the table.
    Create,
    /// Takes only a file and a table that exist.
    Existing,
}

impl From<GivenUp> for OpenError {
    fn from(why: GivenUp) -> Self {
        match why {
            GivenUp::Busy => Self::Busy,
            GivenUp::Failed(error) => Self::Sqlite(error),
        }
    }
}

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
    /// The directory it should lie in is missing.
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
    /// It is a file of another kind.
    #[error("`{}` is not a SQLite database\nhint: set `queue.database` to another file", .database.display())]
    NotADatabase {
        /// The file.
        database: PathBuf,
    },
    /// It cannot be written, or files cannot be made beside it.
    #[error("`{}` cannot be written\nhint: its directory must be writable too, for the -wal and -shm files", .database.display())]
    ReadOnly {
        /// The file.
        database: PathBuf,
    },
    /// Something of that name was not made by jobq.
    #[error("`{table}` exists in the database and is not a queue\nhint: set `queue.table` to a name that is free")]
    ForeignTable {
        /// The name.
        table: TableName,
    },
    /// Somebody dropped the table of a queue.
    #[error(
        "the table of queue `{table}` was dropped\n\
         hint: restore it, or drop what is left (`{table}__…`) and delete its row in `jobq_queues`"
    )]
    DroppedTable {
        /// The queue's table.
        table: TableName,
    },
    /// A newer jobq has changed the table.
    #[error("queue `{table}` has version {version}, this jobq knows up to {known}\nhint: use a newer jobq")]
    Newer {
        /// The queue's table.
        table: TableName,
        /// Its version.
        version: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Another process held the database for longer than `patience`.
    #[error("the database is locked by another process")]
    Busy,
    /// The SQLite that was linked can corrupt a file.
    #[error("SQLite {found} is too old: before 3.51.3 it can corrupt a database")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// SQLite did not take a setting.
    #[error("SQLite did not take `PRAGMA {pragma} = {wanted}`, it is at {found}")]
    Pragma {
        /// The setting.
        pragma: &'static str,
        /// What it should be.
        wanted: String,
        /// What it is.
        found: String,
    },
    /// Anything else SQLite says.
    #[error("the database cannot be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The path or the writer's thread cannot be made.
    #[error("the database cannot be opened: {0}")]
    Io(#[from] io::Error),
}

/// A reader waits only for moments in which the log is recovered or removed.
const READ_PATIENCE: Duration = Duration::from_secs(5);

/// The one connection that writes, on a queue whose tables are there.
pub(super) fn writer(options: &QueueOptions, mode: OpenMode) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < 3_051_003 {
        return Err(OpenError::OldSqlite { found: rusqlite::version() });
    }
    let database = &options.database;
    check_path(database, mode)?;
    let opened = connect(options, mode).and_then(|connection| {
        migrations::migrate(&connection, &options.table, mode, &LockWait::to_open(options.patience))?;
        Ok(connection)
    });
    opened.map_err(|error| match error {
        OpenError::Sqlite(error) => explain(error, database),
        other => other,
    })
}

/// A connection that writes the log back and nothing else, in nobody's way.
pub(super) fn checkpointer(database: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Its own end must not be a checkpoint that cannot be interrupted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(READ_PATIENCE)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn read_only(database: &Path) -> Result<Connection> {
    let connection =
        Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(READ_PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn check_path(database: &Path, mode: OpenMode) -> Result<(), OpenError> {
    let database = database.to_owned();
    match database.metadata() {
        Ok(found) if !found.is_file() => Err(OpenError::NotAFile { database }),
        Ok(_) => Ok(()),
        Err(_) => match database.parent() {
            Some(directory) if !directory.is_dir() => Err(OpenError::NoDirectory { directory: directory.to_owned() }),
            _ if mode == OpenMode::Existing => Err(OpenError::NoDatabase { database }),
            _ => Ok(()),
        },
    }
}

fn connect(options: &QueueOptions, mode: OpenMode) -> Result<Connection, OpenError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, mode == OpenMode::Create);
    let mut connection = Connection::open_with_flags(&options.database, flags)?;
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(OpenError::ReadOnly { database: options.database.clone() });
    }
    let patience = LockWait::to_open(options.patience);
    patience.set(&mut connection)?;
    patience.last(|| connection.query_row("PRAGMA journal_mode = wal", [], |_| Ok(())))?;
    read_back(&connection, "journal_mode", "wal".to_owned())?;
    let synchronous = match options.durability {
        Durability::Full => 2,
        Durability::Normal => 1,
    };
    set(&connection, "synchronous", synchronous)?;
    // `checkpoint` sees to it.
    set(&connection, "wal_autocheckpoint", 0)?;
    set(&connection, "journal_size_limit", 64 << 20)?;
    set(&connection, "cache_size", -(64 << 10))?;
    set(&connection, "temp_store", 2)?;
    // Otherwise a statement is planned again for every new value of some parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

fn set(connection: &Connection, pragma: &'static str, value: i64) -> Result<(), OpenError> {
    connection.pragma_update(None, pragma, value)?;
    read_back(connection, pragma, value)
}

fn read_back<T>(connection: &Connection, pragma: &'static str, wanted: T) -> Result<(), OpenError>
where
    T: rusqlite::types::FromSql + PartialEq + fmt::Display,
{
    let found: T = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
    if found == wanted {
        return Ok(());
    }
    Err(OpenError::Pragma { pragma, wanted: wanted.to_string(), found: found.to_string() })
}

/// What SQLite says, in terms of the file.
fn explain(error: rusqlite::Error, database: &Path) -> OpenError {
    let database = database.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { database },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            OpenError::ReadOnly { database }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy,
        _ => OpenError::Sqlite(error),
    }
}
