//! A handle to a running attempt, shared by the guest's side and the caller's.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// A guest that was found computing at this many ticks is a long computation.
const LONG: u32 = 2;

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
    /// When it was written.
    pub time: SystemTime,
    /// Where it came from.
    pub source: Source,
    /// `debug`, `info`, `warn` or `error`; `None` for stdout and stderr.
    pub level: Option<&'static str>,
    /// The text, without its newline.
    pub message: String,
}

/// Carries log lines and progress out of a running attempt, and requests to cancel or stop into it.
#[derive(Debug, Default)]
pub struct AttemptHandle {
    output: Mutex<PendingOutput>,
    cancelled: AtomicBool,
    stop: CancellationToken,
    /// The number of ticks at which the guest was computing.
    ticks: AtomicU32,
}

/// Output that the caller hasn't taken yet.
#[derive(Debug, Default)]
struct PendingOutput {
    lines: Vec<Line>,
    progress: Option<(u8, String)>,
}

impl AttemptHandle {
    /// Takes the lines written since the last call.
    pub fn take_lines(&self) -> Vec<Line> {
        std::mem::take(&mut self.output().lines)
    }

    /// Takes the latest progress report; `None` if there is no new one.
    pub fn take_progress(&self) -> Option<(u8, String)> {
        self.output().progress.take()
    }

    /// Asks the guest to end: from now on `is-cancelled` returns true. Returns whether this was the first request.
    pub fn cancel(&self) -> bool {
        !self.cancelled.swap(true, Ordering::Relaxed)
    }

    /// Stops the guest at once, wherever it is. Its attempt ends as [`Stopped`](super::GuestOutcome::Stopped).
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Adds a line.
    pub fn push(&self, line: Line) {
        self.output().lines.push(line);
    }

    /// Sets the progress: percent, 0 to 100, and a short message.
    pub fn report(&self, percent: u8, message: String) {
        self.output().progress = Some((percent, message));
    }

    /// Whether [`cancel`](Self::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the guest has computed for about 10 ms, waits not included.
    pub fn has_computed_long(&self) -> bool {
        self.ticks.load(Ordering::Relaxed) >= LONG
    }

    /// Records that the guest was computing at a tick.
    pub fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Returns once [`stop`](Self::stop) has been called.
    pub async fn wait_for_stop(&self) {
        self.stop.cancelled().await;
    }

    fn output(&self) -> MutexGuard<'_, PendingOutput> {
        self.output.lock()
    }
}
