//! Writes the log back into the database, never for long in front of whoever waits for an answer.
//!
//! The writer does it itself while little is left, between two transactions: only when nothing is left can the log begin
//! anew. What has piled up behind a long reader is written back by a thread with a connection of its own, which stands in
//! nobody's way but for the disk.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use rusqlite::{Connection, InterruptHandle, Result, Row};

use super::db_files::FilePlace;
use super::open;
use crate::queue::StoreError;

/// How long the log is, without touching it. Some 2 µs.
pub(super) const MEASURE: &str = "PRAGMA wal_checkpoint(NOOP)";

/// Writes back what no reader needs and waits for nobody.
pub(super) const WRITE_BACK: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// The first thing that contradicts itself, or `ok`. Reads the whole file.
const EXAMINE: &str = "PRAGMA integrity_check(1)";

/// Worth a write-back: 4 MB, as SQLite has it.
const WORTH_IT: u32 = 1000;

/// A log of this length could not begin anew for a while; then less is worth it too.
const OVERDUE: u32 = 4 * WORTH_IT;

/// More than this is not written back by the writer: 16 MB take a busy disk a tenth of a second.
const MUCH: u32 = 4 * WORTH_IT;

/// The pause while a reader needs all that is left.
const PAUSE: Duration = Duration::from_secs(1);

/// The log, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    length: u32,
    written_back: u32,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// It is not worth it yet.
    Wait,
    /// The writer may do it.
    WriteBack,
    /// It is for the thread.
    Delegate,
}

impl Log {
    /// From what `PRAGMA wal_checkpoint` answers.
    pub(super) fn read(row: &Row<'_>) -> Result<Self> {
        let pages = |column| row.get(column).map(|pages: i64| u32::try_from(pages).unwrap_or(0));
        Ok(Self { length: pages(1)?, written_back: pages(2)? })
    }

    #[cfg(test)]
    pub(super) const fn new(length: u32, written_back: u32) -> Self {
        Self { length, written_back }
    }

    /// Whether it has been written back, in part or whole, since it was as in `before`. One that has begun anew has.
    pub(super) const fn shows_a_write_back_since(self, before: Self) -> bool {
        self.written_back != before.written_back || self.length < before.length
    }

    /// What is not in the database yet.
    const fn left(self) -> u32 {
        self.length.saturating_sub(self.written_back)
    }

    pub(super) const fn is_long(self) -> bool {
        self.left() > MUCH
    }

    /// What to do after a commit.
    pub(super) const fn advice(self) -> Advice {
        let worth_it = if self.length >= OVERDUE { WORTH_IT / 10 } else { WORTH_IT };
        match self.left() {
            left if left > MUCH => Advice::Delegate,
            left if left >= worth_it => Advice::WriteBack,
            _ => Advice::Wait,
        }
    }
}

/// What the thread is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// There is much to write back.
    WriteBack,
    /// The file has changed and nobody knows why. One whose size has changed was copied over, even if it is sound.
    Examine { resized: bool },
}

/// The way to the thread.
pub(super) struct Checkpointer {
    /// `None` once it is closed.
    calls: Mutex<Option<Sender<Call>>>,
    /// Of the connection, once there is one.
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    pub(super) fn start(file: Arc<FilePlace>) -> io::Result<Self> {
        let (calls, called) = mpsc::channel();
        let interrupt = Arc::<Mutex<Option<InterruptHandle>>>::default();
        let post = Post { called, file, interrupt: interrupt.clone() };
        let thread = thread::Builder::new().name("jobq-checkpoint".to_owned()).spawn(move || post.serve())?;
        Ok(Self { calls: Mutex::new(Some(calls)), interrupt, thread: Mutex::new(Some(thread)) })
    }

    /// Has the thread do something, and waits for nothing.
    pub(super) fn call(&self, call: Call) {
        if let Some(calls) = &*lock(&self.calls) {
            // One that has ended has said why.
            let _ = calls.send(call);
        }
    }

    /// Ends the thread, in the middle of its work if need be: what it has not finished is done again by whoever comes next.
    pub(super) fn close(&self) {
        lock(&self.calls).take();
        if let Some(interrupt) = &*lock(&self.interrupt) {
            interrupt.interrupt();
        }
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes the log back panicked");
        }
    }
}

/// The thread's side.
struct Post {
    called: Receiver<Call>,
    file: Arc<FilePlace>,
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
}

impl Post {
    /// Works whenever it is called, until nobody can call any more.
    fn serve(self) {
        while let Ok(call) = self.called.recv() {
            if let Err(error) = self.work(call) {
                let error = self.file.over(error);
                tracing::warn!("cannot see to the write-ahead log: {error}");
            }
        }
    }

    fn work(&self, call: Call) -> Result<(), StoreError> {
        let connection = open::checkpointer(self.file.database())?;
        *lock(&self.interrupt) = Some(connection.get_interrupt_handle());
        let worked = match call {
            Call::WriteBack => self.write_back(&connection),
            Call::Examine { resized } => self.examine(&connection, resized),
        };
        lock(&self.interrupt).take();
        worked
    }

    /// Writes back until so little is left that the writer can do it.
    fn write_back(&self, connection: &Connection) -> Result<(), StoreError> {
        let mut before = measure(connection, MEASURE)?;
        while before.is_long() {
            self.file.check()?;
            let after = measure(connection, WRITE_BACK)?;
            tracing::debug!(%before, %after, "wrote the write-ahead log back");
            let stuck = after.written_back <= before.written_back;
            before = after;
            if stuck && self.is_over_after(PAUSE) {
                break;
            }
        }
        Ok(())
    }

    /// Looks through a file that somebody else has written to.
    fn examine(&self, connection: &Connection, resized: bool) -> Result<(), StoreError> {
        tracing::warn!("the file of the database was written to, and not by SQLite: looking through all of it");
        let found: String = connection.query_row(EXAMINE, [], |row| row.get(0))?;
        if found != "ok" {
            return Err(StoreError::Corrupt(format!("it was written to by something that is not SQLite: {found}")));
        }
        if resized {
            return Err(StoreError::Gone(self.file.database().display().to_string()));
        }
        tracing::info!("the database is sound; only the time of its file has changed");
        Ok(())
    }

    /// Sleeps, and tells whether nobody can call any more.
    fn is_over_after(&self, pause: Duration) -> bool {
        let over = std::time::Instant::now() + pause;
        loop {
            let left = over.saturating_duration_since(std::time::Instant::now());
            match self.called.recv_timeout(left) {
                // Whoever calls now sees that it is at work, and calls again.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pages left", self.left(), self.length)
    }
}

fn measure(connection: &Connection, sql: &str) -> Result<Log> {
    connection.prepare_cached(sql)?.query_row([], Log::read)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(length: u32, written_back: u32) -> Log {
        Log { length, written_back }
    }

    #[test]
    fn the_writer_writes_back_what_is_worth_it_and_not_much() {
        assert_eq!(log(999, 0).advice(), Advice::Wait);
        assert_eq!(log(1000, 0).advice(), Advice::WriteBack);
        assert_eq!(log(1999, 1000).advice(), Advice::Wait, "a reader has kept it from beginning anew");
        assert_eq!(log(4100, 4000).advice(), Advice::WriteBack, "for long");
        assert_eq!(log(4000, 0).advice(), Advice::WriteBack);
        assert_eq!(log(4001, 0).advice(), Advice::Delegate);
        assert_eq!(log(1_000_000, 998_000).advice(), Advice::WriteBack, "the thread has done the most of it");
    }
}
