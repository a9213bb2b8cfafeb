//! What the outside can hear from a running guest and tell it, shared by both sides.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::Notify;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The `log` import.
    Log,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line that a guest wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub time: SystemTime,
    /// Where it came from.
    pub source: Source,
    /// `debug`, `info`, `warn` or `error`; `None` for stdout and stderr.
    pub level: Option<&'static str>,
    /// The text, without its newline.
    pub message: String,
}

/// A line to a running guest: what it logged and how far it is come out, a request to cancel and the order to stop go in.
#[derive(Debug, Default)]
pub struct Tap {
    heard: Mutex<Heard>,
    cancelled: AtomicBool,
    stopped: AtomicBool,
    stop: Notify,
    /// Ticks at which the guest was computing.
    ticks: AtomicU32,
}

/// A guest that was met computing at so many ticks is a long computation.
const LONG: u32 = 2;

#[derive(Debug, Default)]
struct Heard {
    lines: Vec<Line>,
    progress: Option<(u8, String)>,
}

impl Tap {
    /// Takes the lines that have come since the last time.
    pub fn take_lines(&self) -> Vec<Line> {
        std::mem::take(&mut self.heard().lines)
    }

    /// Takes the latest progress report, where there is a new one.
    pub fn take_progress(&self) -> Option<(u8, String)> {
        self.heard().progress.take()
    }

    /// Tells the guest that it should end: `is-cancelled` answers true from here on. Returns whether nobody had before.
    pub fn cancel(&self) -> bool {
        !self.cancelled.swap(true, Ordering::Relaxed)
    }

    /// Stops the guest at once, wherever it is; its run ends as [`Stopped`](super::GuestOutcome::Stopped).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.stop.notify_waiters();
        self.stop.notify_one();
    }

    /// Hands a line out.
    pub fn push(&self, line: Line) {
        self.heard().lines.push(line);
    }

    /// Hands a progress report out: percent, 0 to 100, and a few words.
    pub fn report(&self, percent: u8, message: String) {
        self.heard().progress = Some((percent, message));
    }

    /// Whether [`cancel`](Self::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the guest has computed for some 10 ms by now, waits not counted.
    pub fn has_computed_long(&self) -> bool {
        self.ticks.load(Ordering::Relaxed) >= LONG
    }

    /// Takes note that the guest was met computing.
    pub fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns once [`stop`](Self::stop) has been called.
    pub async fn wait_for_stop(&self) {
        while !self.is_stopped() {
            self.stop.notified().await;
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
