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

use rusqlite::{Connection, Result};
use tokio::sync::oneshot;

use super::open;
use crate::queue::StoreError;

/// Another number whenever another connection has committed. Read from shared memory in about 3 µs.
const DATA_VERSION: &str = "PRAGMA data_version";

/// The way to the thread.
pub(super) struct Lookout {
    /// `None` once it is closed.
    asks: Mutex<Option<Sender<Ask>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Somebody who wants to be told of the next change.
struct Ask {
    pace: Duration,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Lookout {
    pub(super) fn start(database: PathBuf) -> io::Result<Self> {
        let (asks, asked) = mpsc::channel();
        let mut post = Post { database, connection: None, seen: None };
        let thread = thread::Builder::new().name("jobq-lookout".to_owned()).spawn(move || post.keep(&asked))?;
        Ok(Self { asks: Mutex::new(Some(asks)), thread: Mutex::new(Some(thread)) })
    }

    /// Returns once there has been a commit since the last answer, looking every `pace`. The first look is always one.
    pub(super) async fn change(&self, pace: Duration) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        match lock(&self.asks).as_ref().map(|asks| asks.send(Ask { pace, reply })) {
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

/// The thread's side: its connection, opened when it is first needed and again after an error.
struct Post {
    database: PathBuf,
    connection: Option<Connection>,
    seen: Option<i64>,
}

impl Post {
    fn keep(&mut self, asked: &Receiver<Ask>) {
        let mut waiting: Vec<Ask> = Vec::new();
        let mut looked = None;
        loop {
            waiting.retain(|ask| !ask.reply.is_closed());
            let next = waiting.iter().map(|ask| due(looked, ask.pace)).min();
            let asked = match next {
                None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => asked.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match asked {
                Ok(ask) => waiting.push(ask),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    looked = Some(Instant::now());
                    self.answer(&mut waiting);
                }
            }
        }
    }

    fn answer(&mut self, waiting: &mut Vec<Ask>) {
        let answer = match self.look() {
            Ok(false) => return,
            Ok(true) => Ok(()),
            Err(error) => {
                self.connection = None;
                Err(StoreError::from(error))
            }
        };
        for ask in waiting.drain(..) {
            // Whoever stopped waiting does not want to know.
            let _ = ask.reply.send(answer.clone());
        }
    }

    /// Whether there is another version than the last time.
    fn look(&mut self) -> Result<bool> {
        let connection = match &self.connection {
            Some(connection) => connection,
            None => {
                self.seen = None;
                self.connection.insert(open::read_only(&self.database)?)
            }
        };
        let version = connection.prepare_cached(DATA_VERSION)?.query_row([], |row| row.get(0))?;
        Ok(self.seen.replace(version) != Some(version))
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
