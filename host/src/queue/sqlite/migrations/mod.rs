//! Brings a queue's tables to the version this program knows; many processes may try at once.

use rusqlite::{Connection, OptionalExtension, Result, Transaction, TransactionBehavior};

use super::TableName;
use super::lock_wait::LockWait;
use super::open::{OpenError, OpenMode};

/// In order: the first makes version 1. Only ever append.
const MIGRATIONS: [&str; 2] = [include_str!("0001_queue.sql"), include_str!("0002_deferred.sql")];

/// The version of every queue in this file. Not `user_version`: the file may be the application's.
const REGISTRY: &str = "
CREATE TABLE IF NOT EXISTS jobq_queues (
  table_name TEXT PRIMARY KEY,
  version    INTEGER NOT NULL
) STRICT";

const OBJECT: &str = "SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";

const VERSION: &str = "SELECT version FROM jobq_queues WHERE table_name = ?1 COLLATE NOCASE";

const REGISTER: &str = "INSERT INTO jobq_queues (table_name, version) VALUES (?1, ?2)
ON CONFLICT (table_name) DO UPDATE SET version = excluded.version";

/// What stands in the file under a queue's name.
enum Standing {
    Nothing,
    /// A table, view or index that jobq did not make.
    Foreign,
    /// The queue was there and somebody dropped its table.
    Dropped,
    Queue(i64),
}

/// Makes or updates the queue's tables; takes the write lock only where there is something to do.
pub(super) fn migrate(
    connection: &Connection,
    table: &TableName,
    mode: OpenMode,
    patience: &LockWait,
) -> Result<(), OpenError> {
    // All of one look in one snapshot: between two, another process may have made the queue, and it would seem foreign.
    let snapshot = connection.unchecked_transaction()?;
    if missing(&snapshot, table, mode)?.is_empty() {
        return Ok(());
    }
    if mode == OpenMode::ReadOnly {
        return Err(OpenError::Older { table: table.clone() });
    }
    drop(snapshot);
    let transaction = patience.last(|| Transaction::new_unchecked(connection, TransactionBehavior::Immediate))?;
    let missing = missing(&transaction, table, mode)?;
    transaction.execute_batch(REGISTRY)?;
    for migration in missing {
        transaction.execute_batch(&table.put_into(migration))?;
    }
    transaction.execute(REGISTER, (table.as_str(), latest()))?;
    Ok(transaction.commit()?)
}

/// The migrations that this queue has not seen.
fn missing(connection: &Connection, table: &TableName, mode: OpenMode) -> Result<&'static [&'static str], OpenError> {
    let version = match (standing(connection, table)?, mode) {
        (Standing::Nothing, OpenMode::Create) => 0,
        (Standing::Nothing, OpenMode::Existing | OpenMode::ReadOnly) => {
            return Err(OpenError::NoTable { table: table.clone() });
        }
        (Standing::Foreign, _) => return Err(OpenError::ForeignTable { table: table.clone() }),
        (Standing::Dropped, _) => return Err(OpenError::DroppedTable { table: table.clone() }),
        (Standing::Queue(version), _) => version,
    };
    usize::try_from(version).ok().and_then(|seen| MIGRATIONS.get(seen..)).ok_or_else(|| OpenError::Newer {
        table: table.clone(),
        version,
        known: latest(),
    })
}

fn standing(connection: &Connection, table: &TableName) -> Result<Standing> {
    let exists = |name: &str| connection.query_row(OBJECT, [name], |_| Ok(())).optional().map(|row| row.is_some());
    let version: Option<i64> = match exists("jobq_queues")? {
        true => connection.query_row(VERSION, [table.as_str()], |row| row.get(0)).optional()?,
        false => None,
    };
    Ok(match (version, exists(table.as_str())?) {
        (None, false) => Standing::Nothing,
        (None, true) => Standing::Foreign,
        (Some(_), false) => Standing::Dropped,
        (Some(version), true) => Standing::Queue(version),
    })
}

const fn latest() -> i64 {
    MIGRATIONS.len() as i64
}
