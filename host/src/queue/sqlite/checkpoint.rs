//! The checkpoint thread: writes a large write-ahead log back into the database, and checks a database that something
//! other than SQLite wrote to.
//!
//! The writer checkpoints a small log itself, between two transactions: SQLite resets the log only once all of it is
//! checkpointed. What piled up behind a long read transaction is left to this thread, which has a connection of its own
//! and slows others down only by its use of the disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, InterruptHandle, Result};
use tokio::sync::oneshot;

use super::db_files::DbFiles;
use super::open;
use super::wal::{CHECKPOINT, MEASURE, TRUNCATE, WalSize};
use crate::queue::StoreError;

/// The size of the database in bytes, with what is only in the log.
const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";

/// Returns the first inconsistency, or `ok`. Reads the whole file. Rows older than a constraint are no damage, so the
/// connection ignores constraints.
const INTEGRITY_CHECK: &str = "PRAGMA integrity_check(1)";

/// The pause while a reader needs everything that is left.
const PAUSE: Duration = Duration::from_secs(1);

/// The tries to empty the log, and the pause between them: short read transactions are waited for.
const TRUNCATE_TRIES: u32 = 20;
const TRUNCATE_PAUSE: Duration = Duration::from_millis(50);

/// What the thread is asked to do.
#[derive(Debug)]
pub(super) enum CheckpointTask {
    /// Checkpoint a large log.
    Checkpoint,
    /// Empty the log, and reply.
    Truncate(oneshot::Sender<()>),
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
    has_truncated: Arc<AtomicBool>,
}

impl Checkpointer {
    pub(super) fn start(files: Arc<DbFiles>) -> io::Result<Self> {
        let (tasks, inbox) = mpsc::channel();
        let interrupt = Arc::<Mutex<Option<InterruptHandle>>>::default();
        let has_truncated = Arc::<AtomicBool>::default();
        let checkpoints =
            CheckpointLoop { inbox, files, interrupt: interrupt.clone(), has_truncated: has_truncated.clone() };
        let thread = thread::Builder::new().name("jobq-checkpoint".to_owned()).spawn(move || checkpoints.run())?;
        Ok(Self { tasks: Mutex::new(Some(tasks)), interrupt, thread: Mutex::new(Some(thread)), has_truncated })
    }

    /// Hands the thread a task, without waiting for it.
    pub(super) fn submit(&self, task: CheckpointTask) {
        if let Some(tasks) = &*self.tasks.lock() {
            // The thread logged an error before it ended.
            let _ = tasks.send(task);
        }
    }

    /// Empties the log, so that deleted text is gone from it. Gives up after a second if read transactions stay open.
    pub(super) async fn truncate(&self) {
        let (reply, done) = oneshot::channel();
        self.submit(CheckpointTask::Truncate(reply));
        // The sender is dropped without a reply if the thread ends or fails.
        let _ = done.await;
    }

    /// Whether the log was emptied since the last call: the file has changed then, and the log does not show why.
    pub(super) fn has_truncated(&self) -> bool {
        self.has_truncated.swap(false, Ordering::Relaxed)
    }

    /// Stops the thread, in the middle of a task if need be. The next process that opens the file does the rest.
    pub(super) fn close(&self) {
        self.tasks.lock().take();
        if let Some(interrupt) = &*self.interrupt.lock() {
            interrupt.interrupt();
        }
        let thread = self.thread.lock().take();
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
    has_truncated: Arc<AtomicBool>,
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
        *self.interrupt.lock() = Some(connection.get_interrupt_handle());
        let done = match task {
            CheckpointTask::Checkpoint => self.checkpoint(&connection),
            CheckpointTask::Truncate(reply) => {
                let done = self.truncate(&connection);
                // Receiver dropped.
                let _ = reply.send(());
                done
            }
            CheckpointTask::Examine { resized } => self.examine(&connection, resized),
        };
        self.interrupt.lock().take();
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

    /// Empties the log. That takes the write lock, so most of the log is checkpointed before, and nothing is waited for with
    /// the lock held.
    fn truncate(&self, connection: &Connection) -> Result<(), StoreError> {
        connection.busy_timeout(Duration::ZERO)?;
        for _ in 0..TRUNCATE_TRIES {
            self.files.check()?;
            measure(connection, CHECKPOINT)?;
            self.has_truncated.store(true, Ordering::Relaxed);
            if measure(connection, TRUNCATE)?.is_empty() || self.is_closed_within(TRUNCATE_PAUSE) {
                break;
            }
        }
        Ok(())
    }

    /// Checks a file that something other than SQLite wrote to.
    fn examine(&self, connection: &Connection, resized: bool) -> Result<(), StoreError> {
        tracing::info!("the database file changed without a visible checkpoint: checking its integrity");
        let found: String = connection.query_row(INTEGRITY_CHECK, [], |row| row.get(0))?;
        if found != "ok" {
            return Err(StoreError::Corrupt(format!("something other than SQLite wrote to it: {found}")));
        }
        if resized && !self.has_size_of_a_checkpoint(connection)? {
            return Err(StoreError::Gone(self.files.database().display().to_string()));
        }
        tracing::info!("the database is sound");
        Ok(())
    }

    /// Whether the file is as large as a complete checkpoint leaves it: another process may have made one that the log no longer
    /// shows. A copy of another database is not. Repeated, because the size may change between the two looks.
    fn has_size_of_a_checkpoint(&self, connection: &Connection) -> Result<bool, StoreError> {
        for _ in 0..TRUNCATE_TRIES {
            let expected: u64 = connection.query_row(SIZE, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
            let size =
                std::fs::metadata(self.files.database()).map_err(|error| StoreError::Failed(error.to_string()))?.len();
            if size == expected {
                return Ok(true);
            }
            if self.is_closed_within(TRUNCATE_PAUSE) {
                return Ok(true);
            }
        }
        Ok(false)
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
