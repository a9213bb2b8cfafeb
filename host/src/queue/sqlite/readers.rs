//! Read-only connections beside the writer. Each call has its own snapshot and drops it: a snapshot that lives on keeps the
//! log from being written back, and the log grows.
//!
//! They have threads of their own. Those of the runtime may all be taken by guests that read from a dead file system,
//! and leases are looked after by reading.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use rusqlite::{Connection, Result};
use tokio::sync::oneshot;

use super::db_files::DbFiles;
use super::open;
use super::session::Session;
use super::table_name::TableName;
use crate::queue::StoreError;

/// Reads at once; more wait for their turn.
const THREADS: usize = 2;

type Call = Box<dyn FnOnce(&mut Desk) + Send>;

/// The way to the threads.
pub(super) struct Readers {
    /// `None` once they are closed.
    calls: Mutex<Option<Sender<Call>>>,
    /// Told when the last thread has ended, by all senders being gone.
    ended: tokio::sync::Mutex<tokio::sync::mpsc::Receiver<()>>,
}

impl Readers {
    pub(super) fn start(place: Arc<DbFiles>, table: TableName) -> io::Result<Self> {
        let (calls, waiting) = mpsc::channel();
        let (alive, ended) = tokio::sync::mpsc::channel(1);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..THREADS {
            let (waiting, alive) = (Arc::clone(&waiting), alive.clone());
            let mut desk = Desk { place: place.clone(), table: table.clone(), connection: None };
            thread::Builder::new().name("jobq-reader".to_owned()).spawn(move || {
                let _alive = alive;
                while let Some(call) = next(&waiting) {
                    call(&mut desk);
                }
            })?;
        }
        Ok(Self { calls: Mutex::new(Some(calls)), ended: tokio::sync::Mutex::new(ended) })
    }

    /// Runs `read` on one snapshot, away from the async threads.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |desk| {
            if !reply.is_closed() {
                // Whoever stopped waiting does not want to know.
                let _ = reply.send(desk.read(read));
            }
        });
        match lock(&self.calls).as_ref().map(|calls| calls.send(call)) {
            Some(Ok(())) => {}
            _ => return Err(StoreError::Closed),
        }
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Lets reads that were asked for come to their end and begins no other.
    pub(super) async fn close(&self) {
        lock(&self.calls).take();
        while self.ended.lock().await.recv().await.is_some() {}
    }
}

fn next(waiting: &Mutex<Receiver<Call>>) -> Option<Call> {
    lock(waiting).recv().ok()
}

/// A thread's side: its connection, opened when it is first needed and again after an error.
struct Desk {
    place: Arc<DbFiles>,
    table: TableName,
    connection: Option<Connection>,
}

impl Desk {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
