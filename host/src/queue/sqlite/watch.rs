//! Notices that somebody has committed, without a word to the writer or to the runtime while nobody has.
//!
//! SQLite counts the commits of other connections; this one never writes, so it sees those of every process, its own included.
//! It looks from a thread that sleeps until the log is written to: `cadence` says when, `file_events` wakes it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::oneshot;

use super::db_files::FilePlace;
use super::file_events::FileEvents;
use super::open;
use super::poll_timer::{Finding, Pace, PollTimer};
use crate::queue::{ChangeCursor, StoreError};

/// Another number whenever another connection has committed. Read from shared memory in about 3 µs.
const DATA_VERSION: &str = "PRAGMA data_version";

/// The pause after a look that failed; twice as long after each that follows.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The way to the thread.
pub(super) struct ChangeWatcher {
    /// `None` once it is closed.
    asks: Mutex<Option<Sender<Ask>>>,
    /// Wakes the thread when an ask is sent or no more can come.
    bell: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Somebody who wants to be told of the first change after the one that is known.
struct Ask {
    since: ChangeCursor,
    pace: Pace,
    reply: oneshot::Sender<Result<ChangeCursor, StoreError>>,
}

impl ChangeWatcher {
    pub(super) fn start(place: Arc<FilePlace>) -> io::Result<Self> {
        let (asks, asked) = mpsc::channel();
        let (bell, rung) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let events = FileEvents::of(&place).inspect_err(|error| {
            tracing::warn!(
                "writes of other programs are looked for at every poll_interval, no watch on files is to be had: {error}"
            );
        });
        let events = events.ok();
        let post = Post {
            cadence: PollTimer::new(events.is_some()),
            place,
            asked,
            rung,
            events,
            connection: None,
            waiting: Vec::new(),
            newest: ChangeCursor::default(),
            trouble: None,
        };
        let thread = thread::Builder::new().name("jobq-watch".to_owned()).spawn(move || post.keep())?;
        Ok(Self { asks: Mutex::new(Some(asks)), bell, thread: Mutex::new(Some(thread)) })
    }

    /// Returns once there has been a commit after `since`. The first look always counts as one.
    ///
    /// # Errors
    /// Only what is final: it tries again after every other error.
    pub(super) async fn change(&self, since: ChangeCursor, pace: Pace) -> Result<ChangeCursor, StoreError> {
        let (reply, answer) = oneshot::channel();
        match lock(&self.asks).as_ref().map(|asks| asks.send(Ask { since, pace, reply })) {
            Some(Ok(())) => self.ring(),
            _ => return Err(StoreError::Closed),
        }
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Ends the thread and its connection.
    pub(super) async fn close(&self) {
        lock(&self.asks).take();
        self.ring();
        let Some(thread) = lock(&self.thread).take() else { return };
        if !matches!(tokio::task::spawn_blocking(|| thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the thread that watches the queue for changes panicked");
        }
    }

    fn ring(&self) {
        // Where it is full it rings already; where nobody listens the thread has ended.
        let _ = (&self.bell).write(&[1]);
    }
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        lock(&self.asks).take();
        self.ring();
    }
}

/// The thread's side.
struct Post {
    cadence: PollTimer,
    place: Arc<FilePlace>,
    asked: Receiver<Ask>,
    rung: UnixStream,
    events: Option<FileEvents>,
    /// With the version that was seen last; another one after each error.
    connection: Option<(Connection, Option<i64>)>,
    waiting: Vec<Ask>,
    /// The last change that was noticed.
    newest: ChangeCursor,
    /// Why it cannot look, and how long it waits before it tries again.
    trouble: Option<(String, Duration)>,
}

impl Post {
    /// Looks when it is time to, as long as anybody can ask; sleeps while nobody does.
    fn keep(mut self) {
        while self.take_asks() {
            let Some(pace) = self.pace() else {
                self.sleep(None, false);
                continue;
            };
            let now = Instant::now();
            let left = self.cadence.due(pace, now).saturating_duration_since(now);
            if left.is_zero() {
                self.look();
            } else if self.sleep(Some(left), self.cadence.listens()) {
                self.cadence.written(Instant::now());
            }
        }
    }

    /// Takes in who asks by now; `false` when nobody can any more.
    fn take_asks(&mut self) -> bool {
        loop {
            match self.asked.try_recv() {
                Ok(ask) if ask.since < self.newest => _ = ask.reply.send(Ok(self.newest)),
                Ok(ask) => {
                    self.waiting.push(ask);
                    self.cadence.asked(Instant::now());
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        self.waiting.retain(|ask| !ask.reply.is_closed());
        true
    }

    /// The shortest that is wanted; `None` where nobody waits.
    fn pace(&self) -> Option<Pace> {
        let paces = self.waiting.iter().map(|ask| ask.pace);
        paces.reduce(|one, other| Pace { poll: one.poll.min(other.poll), net: one.net.min(other.net) })
    }

    /// Sleeps until somebody rings, the time is over or, if it `listens`, a file is written to: then it is true.
    fn sleep(&mut self, time: Option<Duration>, listens: bool) -> bool {
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = vec![PollFd::new(&self.rung, PollFlags::IN)];
        let events = self.events.as_ref().filter(|_| listens);
        let fd = events.map(FileEvents::fd);
        fds.extend(fd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        // An interrupted sleep is a short one.
        _ = poll(&mut fds, time.as_ref());
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            let mut rings = [0; 64];
            while matches!((&self.rung).read(&mut rings), Ok(64)) {}
        }
        ready.get(1).is_some_and(|ready| *ready)
    }

    fn look(&mut self) {
        let written = self.events.as_ref().is_some_and(FileEvents::drain);
        match self.changed() {
            Ok(changed) => {
                if self.trouble.take().is_some() {
                    tracing::info!("the queue is watched for changes again");
                }
                let finding = self.cadence.looked(Instant::now(), written, changed);
                if finding == Finding::WritesAreNotSeen {
                    tracing::warn!(
                        "the system does not tell of all writes to the database: from now on they are looked for at \
                         every poll_interval"
                    );
                }
                if changed {
                    self.newest = self.newest.next();
                    self.answer(&Ok(self.newest));
                }
            }
            Err(error) if error.is_fatal() => self.answer(&Err(error)),
            Err(error) => self.trouble(&error),
        }
    }

    /// Whether there has been a commit since the last call.
    fn changed(&mut self) -> Result<bool, StoreError> {
        self.place.check()?;
        let (connection, seen) = match self.connection.take() {
            Some(open) => open,
            None => (open::read_only(self.place.database()).map_err(|error| self.place.over(error.into()))?, None),
        };
        let version =
            connection.prepare_cached(DATA_VERSION).and_then(|mut version| version.query_row([], |row| row.get(0)));
        let version: i64 = version.map_err(|error| self.place.over(error.into()))?;
        self.connection = Some((connection, Some(version)));
        Ok(seen != Some(version))
    }

    /// Says what is in the way, once, and tries again later.
    fn trouble(&mut self, error: &StoreError) {
        let text = error.to_string();
        let pause = match self.trouble.take() {
            Some((told, pause)) if told == text => (pause * 2).min(LONGEST_PAUSE),
            _ => {
                tracing::warn!("cannot look whether the queue has changed, trying again: {text}");
                FIRST_PAUSE
            }
        };
        self.cadence.failed(Instant::now(), pause);
        self.trouble = Some((text, pause));
    }

    fn answer(&mut self, answer: &Result<ChangeCursor, StoreError>) {
        for ask in self.waiting.drain(..) {
            // Whoever stopped waiting does not want to know.
            let _ = ask.reply.send(answer.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
