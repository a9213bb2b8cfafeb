//! The change watcher: notices commits by any process, without waking the writer or the runtime when there are none.
//!
//! SQLite counts the commits of other connections (`data_version`). This connection never writes, so it sees all of them,
//! including our own. Its thread sleeps until the log is written to: `file_events` wakes it, `poll_timer` says when to look.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::oneshot;

use super::db_files::DbFiles;
use super::file_events::FileEvents;
use super::open;
use super::poll_timer::{PollIntervals, PollTimer, WriteEvents};
use crate::queue::{ChangeCursor, StoreError};

/// Changes whenever another connection commits. Read from shared memory in about 3 µs.
const DATA_VERSION: &str = "PRAGMA data_version";

/// The pause after a failed look; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The handle to the thread.
pub(super) struct ChangeWatcher {
    /// `None` once it is closed.
    requests: Mutex<Option<Sender<WaitRequest>>>,
    /// Wakes the thread when a request is sent or the handle is closed.
    wake: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A request for the first change after `since`.
struct WaitRequest {
    since: ChangeCursor,
    intervals: PollIntervals,
    reply: oneshot::Sender<Result<ChangeCursor, StoreError>>,
}

impl ChangeWatcher {
    pub(super) fn start(files: Arc<DbFiles>) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let events = FileEvents::of(&files).inspect_err(|error| {
            tracing::warn!(
                "cannot watch the database files, so writes by other programs are looked for every poll_interval: {error}"
            );
        });
        let events = events.ok();
        let watcher = WatchLoop {
            timer: PollTimer::new(events.is_some()),
            files,
            inbox,
            woken,
            events,
            connection: None,
            waiting: Vec::new(),
            newest: ChangeCursor::default(),
            trouble: None,
        };
        let thread = thread::Builder::new().name("jobq-watch".to_owned()).spawn(move || watcher.run())?;
        Ok(Self { requests: Mutex::new(Some(requests)), wake, thread: Mutex::new(Some(thread)) })
    }

    /// Returns once there has been a commit after `since`. The first look always counts as one.
    ///
    /// # Errors
    /// Only fatal ones. It retries after all others.
    pub(super) async fn change(
        &self,
        since: ChangeCursor,
        intervals: PollIntervals,
    ) -> Result<ChangeCursor, StoreError> {
        let (reply, received) = oneshot::channel();
        match self.requests.lock().as_ref().map(|requests| requests.send(WaitRequest { since, intervals, reply })) {
            Some(Ok(())) => self.wake_thread(),
            _ => return Err(StoreError::Closed),
        }
        received.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Ends the thread and its connection.
    pub(super) async fn close(&self) {
        self.requests.lock().take();
        self.wake_thread();
        let Some(thread) = self.thread.lock().take() else { return };
        if !matches!(tokio::task::spawn_blocking(|| thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the change watcher panicked");
        }
    }

    fn wake_thread(&self) {
        // Fails if a wake-up is already pending or the thread has ended.
        let _ = (&self.wake).write(&[1]);
    }
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        self.requests.lock().take();
        self.wake_thread();
    }
}

/// The thread's side.
struct WatchLoop {
    timer: PollTimer,
    files: Arc<DbFiles>,
    inbox: Receiver<WaitRequest>,
    woken: UnixStream,
    events: Option<FileEvents>,
    /// With the last `data_version`. Reopened after each error.
    connection: Option<(Connection, Option<i64>)>,
    waiting: Vec<WaitRequest>,
    /// The last change noticed.
    newest: ChangeCursor,
    /// The current error, and the pause before the next look.
    trouble: Option<(String, Duration)>,
}

impl WatchLoop {
    /// Looks when it is time to, until the handle is closed. Sleeps while there are no requests.
    fn run(mut self) {
        while self.take_requests() {
            let Some(intervals) = self.intervals() else {
                self.sleep(None, false);
                continue;
            };
            let now = Instant::now();
            let left = self.timer.due(intervals, now).saturating_duration_since(now);
            if left.is_zero() {
                self.look();
            } else if self.sleep(Some(left), self.timer.waits_for_writes()) {
                self.timer.written(Instant::now());
            }
        }
    }

    /// Takes new requests; `false` when the handle is closed.
    fn take_requests(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(request) if request.since < self.newest => _ = request.reply.send(Ok(self.newest)),
                Ok(request) => {
                    self.waiting.push(request);
                    self.timer.requested(Instant::now());
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        self.waiting.retain(|request| !request.reply.is_closed());
        true
    }

    /// The shortest intervals requested; `None` without requests.
    fn intervals(&self) -> Option<PollIntervals> {
        let all = self.waiting.iter().map(|request| request.intervals);
        all.reduce(|one, other| PollIntervals {
            polled: one.polled.min(other.polled),
            watched: one.watched.min(other.watched),
        })
    }

    /// Sleeps until a request arrives, `time` is over or, with `watch`, a file is written to. Returns whether one was.
    fn sleep(&mut self, time: Option<Duration>, watch: bool) -> bool {
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        let events = self.events.as_ref().filter(|_| watch);
        let fd = events.map(FileEvents::fd);
        fds.extend(fd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        // A signal ends it early, which does no harm.
        _ = poll(&mut fds, time.as_ref());
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            let mut bytes = [0; 64];
            while matches!((&self.woken).read(&mut bytes), Ok(64)) {}
        }
        ready.get(1).is_some_and(|ready| *ready)
    }

    fn look(&mut self) {
        let written = self.events.as_ref().is_some_and(FileEvents::drain);
        match self.changed() {
            Ok(changed) => {
                if self.trouble.take().is_some() {
                    tracing::info!("watching the queue for changes again");
                }
                let events = self.timer.looked(Instant::now(), written, changed);
                if events == WriteEvents::Unreliable {
                    tracing::warn!(
                        "the system does not report all writes to the database files: from now on they are looked for \
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
        self.files.check()?;
        let (connection, seen) = match self.connection.take() {
            Some(open) => open,
            None => {
                (open::read_only(self.files.database()).map_err(|error| self.files.record_fatal(error.into()))?, None)
            }
        };
        let version =
            connection.prepare_cached(DATA_VERSION).and_then(|mut version| version.query_row([], |row| row.get(0)));
        let version: i64 = version.map_err(|error| self.files.record_fatal(error.into()))?;
        self.connection = Some((connection, Some(version)));
        Ok(seen != Some(version))
    }

    /// Logs a new error once, and schedules the next look.
    fn trouble(&mut self, error: &StoreError) {
        let text = error.to_string();
        let pause = match self.trouble.take() {
            Some((logged, pause)) if logged == text => (pause * 2).min(LONGEST_PAUSE),
            _ => {
                tracing::warn!("cannot check whether the queue has changed, retrying: {text}");
                FIRST_PAUSE
            }
        };
        self.timer.failed(Instant::now(), pause);
        self.trouble = Some((text, pause));
    }

    fn answer(&mut self, answer: &Result<ChangeCursor, StoreError>) {
        for request in self.waiting.drain(..) {
            // Receiver dropped.
            let _ = request.reply.send(answer.clone());
        }
    }
}
