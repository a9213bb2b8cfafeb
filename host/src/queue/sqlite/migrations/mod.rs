//! Migrates a queue's tables to the newest schema version. Several processes may try at once.

use rusqlite::{Connection, OptionalExtension, Result, Transaction, TransactionBehavior};

use super::lock_wait::LockWait;
use super::open_error::OpenError;
use super::options::OpenMode;
use super::table_name::TableName;

/// In order: the first creates version 1. Only append to it.
const MIGRATIONS: [&str; 2] = [include_str!("0001_queue.sql"), include_str!("0002_deferred.sql")];

/// The schema version of every queue in the file. Not `user_version`: that may belong to the application.
const REGISTRY: &str = "
CREATE TABLE IF NOT EXISTS jobq_queues (
  table_name TEXT PRIMARY KEY,
  version    INTEGER NOT NULL
) STRICT";

const OBJECT: &str = "SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";

const VERSION: &str = "SELECT version FROM jobq_queues WHERE table_name = ?1 COLLATE NOCASE";

const REGISTER: &str = "INSERT INTO jobq_queues (table_name, version) VALUES (?1, ?2)
ON CONFLICT (table_name) DO UPDATE SET version = excluded.version";

/// What the file has under the queue's name.
enum TableState {
    Missing,
    /// A table, view or index that jobq did not create.
    Foreign,
    /// The queue is registered, but its table was dropped.
    Dropped,
    /// The queue, with its schema version.
    Queue(i64),
}

/// Creates or migrates the queue's tables. Takes the write lock only if there is something to do.
pub(super) fn migrate(
    connection: &Connection,
    table: &TableName,
    mode: OpenMode,
    lock_wait: &LockWait,
) -> Result<(), OpenError> {
    // One snapshot for all queries. Otherwise another process could create the queue in between, and it would look foreign.
    let snapshot = connection.unchecked_transaction()?;
    if missing(&snapshot, table, mode)?.is_empty() {
        return Ok(());
    }
    drop(snapshot);
    let transaction = lock_wait.retry(|| Transaction::new_unchecked(connection, TransactionBehavior::Immediate))?;
    let missing = missing(&transaction, table, mode)?;
    transaction.execute_batch(REGISTRY)?;
    for migration in missing {
        transaction.execute_batch(&table.put_into(migration))?;
    }
    transaction.execute(REGISTER, (table.as_str(), latest()))?;
    Ok(transaction.commit()?)
}

/// The migrations that this queue still needs.
fn missing(connection: &Connection, table: &TableName, mode: OpenMode) -> Result<&'static [&'static str], OpenError> {
    let version = match (table_state(connection, table)?, mode) {
        (TableState::Missing, OpenMode::Create) => 0,
        (TableState::Missing, OpenMode::Existing) => return Err(OpenError::NoTable { table: table.clone() }),
        (TableState::Foreign, _) => return Err(OpenError::ForeignTable { table: table.clone() }),
        (TableState::Dropped, _) => return Err(OpenError::DroppedTable { table: table.clone() }),
        (TableState::Queue(version), _) => version,
    };
    usize::try_from(version).ok().and_then(|done| MIGRATIONS.get(done..)).ok_or_else(|| OpenError::Newer {
        table: table.clone(),
        version,
        known: latest(),
    })
}

fn table_state(connection: &Connection, table: &TableName) -> Result<TableState> {
    let exists = |name: &str| connection.query_row(OBJECT, [name], |_| Ok(())).optional().map(|row| row.is_some());
    let version: Option<i64> = match exists("jobq_queues")? {
        true => connection.query_row(VERSION, [table.as_str()], |row| row.get(0)).optional()?,
        false => None,
    };
    Ok(match (version, exists(table.as_str())?) {
        (None, false) => TableState::Missing,
        (None, true) => TableState::Foreign,
        (Some(_), false) => TableState::Dropped,
        (Some(version), true) => TableState::Queue(version),
    })
}

const fn latest() -> i64 {
    MIGRATIONS.len() as i64
}
