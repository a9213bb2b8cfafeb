//! Notices that somebody has written, without a word to the writer or to the runtime while nobody has.
//!
//! SQLite counts the commits of other connections; this one never writes, so it sees those of every process, its own included.
//! It looks from a thread that sleeps in between: an idle queue costs one wake-up a look and nothing else.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use rusqlite::Result;
use tokio::sync::oneshot;

use super::open;
use crate::queue::{ChangeCursor, StoreError};

/// Another number whenever another connection has committed. Read from shared memory in about 3 µs.
const DATA_VERSION: &str = "PRAGMA data_version";

/// The way to the thread.
pub(super) struct Lookout {
    /// `None` once it is closed.
    asks: Mutex<Option<Sender<Ask>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Somebody who wants to be told of the first change after the one that is known.
struct Ask {
    since: ChangeCursor,
    pace: Duration,
    reply: oneshot::Sender<Result<ChangeCursor, StoreError>>,
}

impl Lookout {
    pub(super) fn start(database: PathBuf) -> io::Result<Self> {
        let (asks, asked) = mpsc::channel();
        let post = Post { database, asked, waiting: Vec::new(), looked: None, newest: ChangeCursor::default() };
        let thread = thread::Builder::new().name("jobq-lookout".to_owned()).spawn(move || post.keep())?;
        Ok(Self { asks: Mutex::new(Some(asks)), thread: Mutex::new(Some(thread)) })
    }

    /// Returns once there has been a commit after `since`, looking every `pace`. The first look always counts as one.
    pub(super) async fn change(&self, since: ChangeCursor, pace: Duration) -> Result<ChangeCursor, StoreError> {
        let (reply, answer) = oneshot::channel();
        match lock(&self.asks).as_ref().map(|asks| asks.send(Ask { since, pace, reply })) {
            Some(Ok(())) => {}
            _ => return Err(StoreError::Closed),
        }
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Ends the thread and its connection.
    pub(super) async fn close(&self) {
        lock(&self.asks).take();
        let Some(thread) = lock(&self.thread).take() else { return };
        if !matches!(tokio::task::spawn_blocking(|| thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the thread that looks for changes of the queue panicked");
        }
    }
}

/// The thread's side: who waits, and when it looked for them the last time.
struct Post {
    database: PathBuf,
    asked: Receiver<Ask>,
    waiting: Vec<Ask>,
    looked: Option<Instant>,
    /// The last change that was noticed.
    newest: ChangeCursor,
}

impl Post {
    /// Looks through one connection after the other: a new one after each error.
    fn keep(mut self) {
        while self.until_due() {
            if let Err(error) = self.watch() {
                self.answer(&Err(StoreError::from(error)));
            }
        }
    }

    /// Looks through one connection until nobody can ask any more.
    fn watch(&mut self) -> Result<()> {
        let connection = open::read_only(&self.database)?;
        let mut data_version = connection.prepare(DATA_VERSION)?;
        let mut seen = None;
        loop {
            let version: i64 = data_version.query_row([], |row| row.get(0))?;
            if seen.replace(version) != Some(version) {
                self.newest = self.newest.next();
                self.answer(&Ok(self.newest));
            }
            if !self.until_due() {
                return Ok(());
            }
        }
    }

    /// Takes asks until it is time to look for one of them; `false` when nobody can ask any more.
    fn until_due(&mut self) -> bool {
        loop {
            self.waiting.retain(|ask| !ask.reply.is_closed());
            let next = self.waiting.iter().map(|ask| due(self.looked, ask.pace)).min();
            let asked = match next {
                None => self.asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => self.asked.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match asked {
                Ok(ask) if ask.since < self.newest => _ = ask.reply.send(Ok(self.newest)),
                Ok(ask) => self.waiting.push(ask),
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {
                    self.looked = Some(Instant::now());
                    return true;
                }
            }
        }
    }

    fn answer(&mut self, answer: &Result<ChangeCursor, StoreError>) {
        for ask in self.waiting.drain(..) {
            // Whoever stopped waiting does not want to know.
            let _ = ask.reply.send(answer.clone());
        }
    }
}

/// When to look for somebody who asks for this pace; at once where nobody has looked yet.
fn due(looked: Option<Instant>, pace: Duration) -> Instant {
    let now = Instant::now();
    looked.and_then(|looked| looked.checked_add(pace)).unwrap_or(now)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
