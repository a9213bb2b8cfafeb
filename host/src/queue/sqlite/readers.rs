//! Read-only connections. Each call has its own short snapshot: a long one would block checkpoints, and the log would grow.
//!
//! They run on their own threads. Guests that read from a dead file system can block all threads of the runtime, and
//! renewing leases needs reads.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, thread};

use parking_lot::Mutex;
use rusqlite::{Connection, Result};
use tokio::sync::oneshot;

use super::db_files::DbFiles;
use super::open;
use super::session::Session;
use super::table_name::TableName;
use crate::queue::StoreError;

/// Reads that run at the same time. Others wait.
const THREADS: usize = 2;

type Call = Box<dyn FnOnce(&mut ReaderThread) + Send>;

/// A handle to the threads.
pub(super) struct Readers {
    /// `None` once they are closed.
    calls: Mutex<Option<Sender<Call>>>,
    /// Closed when the last thread has ended and dropped its sender.
    ended: tokio::sync::Mutex<tokio::sync::mpsc::Receiver<()>>,
}

impl Readers {
    pub(super) fn start(place: Arc<DbFiles>, table: TableName) -> io::Result<Self> {
        let (calls, waiting) = mpsc::channel();
        let (alive, ended) = tokio::sync::mpsc::channel(1);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..THREADS {
            let (waiting, alive) = (Arc::clone(&waiting), alive.clone());
            let mut reader = ReaderThread { place: place.clone(), table: table.clone(), connection: None };
            thread::Builder::new().name("jobq-reader".to_owned()).spawn(move || {
                let _alive = alive;
                while let Some(call) = next(&waiting) {
                    call(&mut reader);
                }
            })?;
        }
        Ok(Self { calls: Mutex::new(Some(calls)), ended: tokio::sync::Mutex::new(ended) })
    }

    /// Runs `read` in one snapshot on a reader thread.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |reader| {
            if !reply.is_closed() {
                // Receiver dropped.
                let _ = reply.send(reader.read(read));
            }
        });
        match self.calls.lock().as_ref().map(|calls| calls.send(call)) {
            Some(Ok(())) => {}
            _ => return Err(StoreError::Closed),
        }
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Finishes the reads that are queued. Later ones fail.
    pub(super) async fn close(&self) {
        self.calls.lock().take();
        while self.ended.lock().await.recv().await.is_some() {}
    }
}

fn next(waiting: &Mutex<Receiver<Call>>) -> Option<Call> {
    waiting.lock().recv().ok()
}

/// A thread and its connection, which is opened on first use and again after an error.
struct ReaderThread {
    place: Arc<DbFiles>,
    table: TableName,
    connection: Option<Connection>,
}

impl ReaderThread {
    fn read<T>(&mut self, read: impl FnOnce(&Session<'_>) -> Result<T>) -> Result<T, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => open::read_only(self.place.database()).map_err(|error| self.place.record_fatal(error.into()))?,
        };
        let answer = snapshot(&Session::new(&connection, &self.table), read);
        let answer = answer.map_err(|error| self.place.record_fatal(error.into()))?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

fn snapshot<T>(session: &Session<'_>, read: impl FnOnce(&Session<'_>) -> Result<T>) -> Result<T> {
    session.execute("BEGIN", [])?;
    let answer = read(session);
    session.execute("ROLLBACK", [])?;
    answer
}
