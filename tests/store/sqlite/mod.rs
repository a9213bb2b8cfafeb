//! Tests that only concern the queue in a SQLite file.

mod cleanup;
mod db_files;
mod deferred;
mod open;
mod schema;
mod sharing;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;

use jobq::queue::sqlite::{Durability, OpenMode, QueueOptions, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

/// A directory for a database that stores and foreign programs open.
pub(crate) struct File {
    directory: TempDir,
}

impl File {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("queue.db")
    }

    pub(crate) fn options(&self) -> QueueOptions {
        QueueOptions { durability: Durability::Normal, ..QueueOptions::new(self.path()) }
    }

    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(self.options(), OpenMode::Create).unwrap())
    }

    /// A connection of another program.
    pub(crate) fn foreign(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}
