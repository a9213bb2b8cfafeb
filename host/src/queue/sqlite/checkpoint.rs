//! The checkpoint thread: writes a large write-ahead log back into the database, and checks a database that something
//! other than SQLite wrote to.
//!
//! The writer checkpoints a small log itself, between two transactions: SQLite resets the log only once all of it is
//! checkpointed. What piled up behind a long read transaction is left to this thread, which has a connection of its own
//! and slows others down only by its use of the disk.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, InterruptHandle, Result};

use super::db_files::DbFiles;
use super::open;
use super::wal::{CHECKPOINT, MEASURE, WalSize};
use crate::queue::StoreError;

/// Returns the first inconsistency, or `ok`. Reads the whole file.
const INTEGRITY_CHECK: &str = "PRAGMA integrity_check(1)";

/// The pause while a reader needs everything that is left.
const PAUSE: Duration = Duration::from_secs(1);

/// What the thread is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointTask {
    /// Checkpoint a large log.
    Checkpoint,
    /// Check a file that changed for no known reason. If its size changed, it was copied over, even if it is sound.
    Examine { resized: bool },
}

/// The handle to the thread.
pub(super) struct Checkpointer {
    /// `None` once it is closed.
    tasks: Mutex<Option<Sender<CheckpointTask>>>,
    /// Of the connection, while there is one.
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    pub(super) fn start(files: Arc<DbFiles>) -> io::Result<Self> {
        let (tasks, inbox) = mpsc::channel();
        let interrupt = Arc::<Mutex<Option<InterruptHandle>>>::default();
        let checkpoints = CheckpointLoop { inbox, files, interrupt: interrupt.clone() };
        let thread = thread::Builder::new().name("jobq-checkpoint".to_owned()).spawn(move || checkpoints.run())?;
        Ok(Self { tasks: Mutex::new(Some(tasks)), interrupt, thread: Mutex::new(Some(thread)) })
    }

    /// Hands the thread a task, without waiting for it.
    pub(super) fn submit(&self, task: CheckpointTask) {
        if let Some(tasks) = &*lock(&self.tasks) {
            // The thread logged an error before it ended.
            let _ = tasks.send(task);
        }
    }

    /// Stops the thread, in the middle of a task if need be. The next process that opens the file does the rest.
    pub(super) fn close(&self) {
        lock(&self.tasks).take();
        if let Some(interrupt) = &*lock(&self.interrupt) {
            interrupt.interrupt();
        }
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

/// The thread's side.
struct CheckpointLoop {
    inbox: Receiver<CheckpointTask>,
    files: Arc<DbFiles>,
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
}

impl CheckpointLoop {
    /// Runs tasks until the handle is closed.
    fn run(self) {
        while let Ok(task) = self.inbox.recv() {
            if let Err(error) = self.perform(task) {
                let error = self.files.record_fatal(error);
                tracing::warn!("cannot checkpoint the write-ahead log: {error}");
            }
        }
    }

    fn perform(&self, task: CheckpointTask) -> Result<(), StoreError> {
        let connection = open::checkpointer(self.files.database())?;
        *lock(&self.interrupt) = Some(connection.get_interrupt_handle());
        let done = match task {
            CheckpointTask::Checkpoint => self.checkpoint(&connection),
            CheckpointTask::Examine { resized } => self.examine(&connection, resized),
        };
        lock(&self.interrupt).take();
        done
    }

    /// Checkpoints until the writer can do the rest.
    fn checkpoint(&self, connection: &Connection) -> Result<(), StoreError> {
        let mut before = measure(connection, MEASURE)?;
        while before.is_large() {
            self.files.check()?;
            let after = measure(connection, CHECKPOINT)?;
            tracing::debug!(%before, %after, "checkpointed the write-ahead log");
            let stuck = !after.is_further_than(before);
            before = after;
            if stuck && self.is_closed_within(PAUSE) {
                break;
            }
        }
        Ok(())
    }

    /// Checks a file that something other than SQLite wrote to.
    fn examine(&self, connection: &Connection, resized: bool) -> Result<(), StoreError> {
        tracing::warn!("something other than SQLite wrote to the database file: checking all of it");
        let found: String = connection.query_row(INTEGRITY_CHECK, [], |row| row.get(0))?;
        if found != "ok" {
            return Err(StoreError::Corrupt(format!("something other than SQLite wrote to it: {found}")));
        }
        if resized {
            return Err(StoreError::Gone(self.files.database().display().to_string()));
        }
        tracing::info!("the database is sound; only the modification time of its file changed");
        Ok(())
    }

    /// Sleeps for `pause`. Returns early, with `true`, when the handle is closed.
    fn is_closed_within(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            match self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
                // The task is already being done.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

fn measure(connection: &Connection, sql: &str) -> Result<WalSize> {
    connection.prepare_cached(sql)?.query_row([], WalSize::read)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
