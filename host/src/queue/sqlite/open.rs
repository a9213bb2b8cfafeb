//! Opens the file: checks the path, sets the pragmas and reads each of them back.
//!
//! Only SQLite ever opens the file. Closing any other descriptor on it would drop SQLite's locks.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Result};

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
    let opened = connect(options, mode).and_then(|connection| {
        migrations::migrate(&connection, &options.table, mode, &LockWait::to_open(options.busy_timeout))?;
        Ok(connection)
    });
    opened.map_err(|error| match error {
        OpenError::Sqlite(error) => explain(error, database),
        other => other,
    })
}

/// A connection for checkpoints only.
pub(super) fn checkpointer(database: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
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
    let lock_wait = LockWait::to_open(options.busy_timeout);
    lock_wait.set(&mut connection)?;
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
