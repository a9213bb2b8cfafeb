//! Waits for another process that holds the database's lock, and logs that it waits.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Result};

use super::sqlite_error;

/// How long SQLite waits by itself before it returns, so that the wait can be logged.
const SQLITE_WAIT: Duration = Duration::from_secs(1);

/// The time between two log lines.
const REMINDER: Duration = Duration::from_secs(5);

/// Retries while another process holds the lock.
pub(super) struct LockWait {
    /// `None`: without limit.
    pub(super) limit: Option<Duration>,
    /// The wait before the first log line.
    pub(super) first_notice: Duration,
}

/// Why the wait ended without success.
pub(super) enum LockWaitError {
    /// The limit was reached.
    Busy,
    /// Another error.
    Sqlite(rusqlite::Error),
}

impl LockWait {
    /// For a write. Short waits are normal there.
    pub(super) const fn to_write(limit: Option<Duration>) -> Self {
        Self { limit, first_notice: REMINDER }
    }

    /// For opening: a user may be waiting for the command to start.
    pub(super) const fn to_open(limit: Option<Duration>) -> Self {
        Self { limit, first_notice: Duration::from_secs(1) }
    }

    /// Makes `connection` retry by itself for up to a second, every millisecond.
    pub(super) fn set(&self, connection: &mut Connection) -> Result<()> {
        match self.limit {
            Some(limit) if limit < SQLITE_WAIT => connection.busy_timeout(limit),
            _ => connection.busy_handler(Some(sleep_and_retry)),
        }
    }

    /// Runs `attempt` until it returns something other than "busy".
    pub(super) fn retry<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T, LockWaitError> {
        let started = Instant::now();
        let mut reminder = self.first_notice;
        loop {
            match attempt() {
                Err(error) if sqlite_error::is_busy(&error) => {}
                other => return other.map_err(LockWaitError::Sqlite),
            }
            let waited = started.elapsed();
            if self.limit.is_some_and(|limit| waited >= limit) {
                return Err(LockWaitError::Busy);
            }
            if waited >= reminder {
                let seconds = waited.as_secs();
                tracing::warn!(seconds, "waiting for another process that holds the database's lock");
                reminder = waited + REMINDER;
            }
            // Some statements return "busy" at once, whatever the busy handler.
            thread::sleep(pause());
        }
    }
}

/// SQLite's own pauses grow to 100 ms. A program that uses them loses against every program that polls more often.
fn sleep_and_retry(tries: i32) -> bool {
    thread::sleep(pause());
    u128::try_from(tries).is_ok_and(|tries| tries < SQLITE_WAIT.as_millis())
}

/// Random, so that two programs that wait don't collide again and again.
fn pause() -> Duration {
    Duration::from_micros(fastrand::u64(500..1500))
}
