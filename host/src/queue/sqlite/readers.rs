//! Read-only connections beside the writer. Each call has its own snapshot and drops it: a snapshot that lives on keeps the
//! log from being written back, and the log grows.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::{Connection, Result};
use tokio::sync::Semaphore;

use super::session::Session;
use super::{TableName, open};
use crate::queue::StoreError;

/// Reads at once; more wait for their turn.
const MOST: usize = 4;

pub(super) struct Readers {
    database: PathBuf,
    table: TableName,
    permits: Semaphore,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(database: PathBuf, table: TableName) -> Self {
        Self { database, table, permits: Semaphore::new(MOST), idle: Arc::default() }
    }

    /// Runs `read` on one snapshot, away from the async threads.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let _permit = self.permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let (idle, database, table) = (Arc::clone(&self.idle), self.database.clone(), self.table.clone());
        let call = move || {
            let kept = lock(&idle).pop();
            let connection = kept.map_or_else(|| open::read_only(&database), Ok)?;
            let answer = snapshot(&Session::new(&connection, &table), read)?;
            lock(&idle).push(connection);
            Ok(answer)
        };
        let answer: Result<T> = tokio::task::spawn_blocking(call).await.map_err(|_| StoreError::Closed)?;
        Ok(answer?)
    }

    /// Lets reads that run come to their end and begins no other.
    pub(super) async fn close(&self) {
        let all = u32::try_from(MOST).unwrap_or(u32::MAX);
        if let Ok(permits) = self.permits.acquire_many(all).await {
            self.permits.close();
            drop(permits);
        }
        lock(&self.idle).clear();
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn snapshot<T>(session: &Session<'_>, read: impl FnOnce(&Session<'_>) -> Result<T>) -> Result<T> {
    session.execute("BEGIN", [])?;
    let answer = read(session);
    session.execute("ROLLBACK", [])?;
    answer
}
