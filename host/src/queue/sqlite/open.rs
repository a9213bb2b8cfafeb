//! Opens the file: checks the path, sets the pragmas and reads each of them back.
//!
//! Only SQLite ever opens the file. Closing any other descriptor on it would drop SQLite's locks.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Result};
use rustix::fs::{Access, access};

use super::lock_wait::LockWait;
use super::migrations;
use super::open_error::OpenError;
use super::options::{Durability, OpenMode, QueueOptions};

/// A reader waits only while the log is recovered or removed.
const READ_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The write connection. Creates or migrates the queue's tables.
pub(super) fn writer(options: &QueueOptions, mode: OpenMode) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < 3_051_003 {
        return Err(OpenError::OldSqlite { found: rusqlite::version() });
    }
    let database = &options.database;
    check_path(database, mode)?;
    if mode == OpenMode::ReadOnly {
        return reader(options).map_err(|error| match error {
            OpenError::Sqlite(error) => explain_reading(error, database),
            other => other,
        });
    }
    let opened = connect(options, mode).and_then(|connection| {
        migrations::migrate(&connection, &options.table, mode, &LockWait::to_open(options.busy_timeout))?;
        Ok(connection)
    });
    opened.map_err(|error| match error {
        OpenError::Sqlite(error) => explain(error, database),
        other => other,
    })
}

/// Takes the place of the write connection where nothing may be written.
fn reader(options: &QueueOptions) -> Result<Connection, OpenError> {
    let connection = read_only(&options.database)?;
    migrations::migrate(&connection, &options.table, OpenMode::ReadOnly, &LockWait::to_open(options.busy_timeout))?;
    Ok(connection)
}

/// A connection for checkpoints only.
pub(super) fn checkpointer(database: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "ignore_check_constraints", true)?;
    // SQLite must not checkpoint when it closes: that could not be interrupted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(READ_BUSY_TIMEOUT)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn read_only(database: &Path) -> Result<Connection> {
    let connection =
        Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(READ_BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Bytes of the longest path that SQLite opens.
const MAX_PATH: usize = 512;

fn check_path(database: &Path, mode: OpenMode) -> Result<(), OpenError> {
    let len = database.as_os_str().len();
    if len > MAX_PATH {
        return Err(OpenError::PathTooLong { len, max: MAX_PATH });
    }
    let database = database.to_owned();
    match database.metadata() {
        Ok(found) if !found.is_file() => Err(OpenError::NotAFile { database }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(OpenError::NoAccess { directory: closed_directory(&database) })
        }
        Err(_) => match database.parent() {
            Some(directory) if !directory.is_dir() => Err(OpenError::NoDirectory { directory: directory.to_owned() }),
            _ if mode != OpenMode::Create => Err(OpenError::NoDatabase { database }),
            _ => Ok(()),
        },
    }
}

/// The first directory in the path of a file that this user can't search.
fn closed_directory(database: &Path) -> PathBuf {
    let directories: Vec<&Path> = database.ancestors().skip(1).collect();
    let closed = directories.iter().rev().find(|directory| access(**directory, Access::EXEC_OK).is_err());
    closed.or(directories.first()).map_or_else(PathBuf::new, |directory| (*directory).to_owned())
}

fn connect(options: &QueueOptions, mode: OpenMode) -> Result<Connection, OpenError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, mode == OpenMode::Create);
    let mut connection = Connection::open_with_flags(&options.database, flags)?;
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(OpenError::ReadOnly { database: options.database.clone() });
    }
    let lock_wait = LockWait::to_open(options.busy_timeout);
    lock_wait.set(&mut connection)?;
    let pages: i64 = lock_wait.retry(|| connection.pragma_query_value(None, "page_count", |row| row.get(0)))?;
    if pages == 0 {
        // Has to be set before anything is written. Later, only a `VACUUM` changes it.
        lock_wait.retry(|| connection.pragma_update(None, "auto_vacuum", "INCREMENTAL"))?;
    }
    lock_wait.retry(|| connection.query_row("PRAGMA journal_mode = wal", [], |_| Ok(())))?;
    read_back(&connection, "journal_mode", "wal".to_owned())?;
    let synchronous = match options.durability {
        Durability::Full => 2,
        Durability::Normal => 1,
    };
    set(&connection, "synchronous", synchronous)?;
    // The writer and the checkpoint thread do it.
    set(&connection, "wal_autocheckpoint", 0)?;
    set(&connection, "journal_size_limit", 64 << 20)?;
    set(&connection, "cache_size", -(64 << 10))?;
    set(&connection, "temp_store", 2)?;
    // Deleted jobs may hold personal data: overwrite them.
    set(&connection, "secure_delete", 1)?;
    // Without it, SQLite plans a statement again for new values of some parameters.
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

/// Turns an error of SQLite into one about the file.
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

/// The same for a connection that only reads.
fn explain_reading(error: rusqlite::Error, database: &Path) -> OpenError {
    let refused = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
    );
    match refused.then(|| access(database, Access::READ_OK)) {
        Some(Ok(())) => OpenError::NoLogIndex { database: database.to_owned() },
        Some(Err(_)) => OpenError::Unreadable { database: database.to_owned() },
        None => explain(error, database),
    }
}
