//! Waiting for another process that holds the database, and saying so.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Result};

use super::sqlite_error;

/// SQLite waits for a lock in turns of this length, so that between them somebody can be told.
const TURN: Duration = Duration::from_secs(1);

/// How often it is said that it is still waited for.
const REMINDER: Duration = Duration::from_secs(5);

/// Tries until no other process is in the way.
pub(super) struct LockWait {
    /// `None` never ends.
    pub(super) limit: Option<Duration>,
    /// When it is said for the first time.
    pub(super) silence: Duration,
}

/// Why it was given up.
pub(super) enum GivenUp {
    /// LockWait was over.
    Busy,
    /// Something else was in the way.
    Failed(rusqlite::Error),
}

impl LockWait {
    /// For a write: others write too.
    pub(super) const fn to_write(limit: Option<Duration>) -> Self {
        Self { limit, silence: REMINDER }
    }

    /// For opening: somebody sits before a command that says nothing.
    pub(super) const fn to_open(limit: Option<Duration>) -> Self {
        Self { limit, silence: Duration::from_secs(1) }
    }

    /// Has `connection` wait for a turn by itself, looking again at every millisecond.
    pub(super) fn set(&self, connection: &mut Connection) -> Result<()> {
        match self.limit {
            Some(limit) if limit < TURN => connection.busy_timeout(limit),
            _ => connection.busy_handler(Some(wait_for_a_moment)),
        }
    }

    /// Runs `attempt` until it is not told that somebody is in the way.
    pub(super) fn last<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T, GivenUp> {
        let started = Instant::now();
        let mut reminder = self.silence;
        loop {
            match attempt() {
                Err(error) if sqlite_error::is_busy(&error) => {}
                other => return other.map_err(GivenUp::Failed),
            }
            let waited = started.elapsed();
            if self.limit.is_some_and(|limit| waited >= limit) {
                return Err(GivenUp::Busy);
            }
            if waited >= reminder {
                let seconds = waited.as_secs();
                tracing::warn!(seconds, "waiting for another process that holds the database's lock");
                reminder = waited + REMINDER;
            }
            // Some statements answer "busy" at once, whatever the turn.
            thread::sleep(moment());
        }
    }
}

/// SQLite's own pauses grow to 100 ms: whoever uses them waits longer than everybody who polls more often.
fn wait_for_a_moment(tries: i32) -> bool {
    thread::sleep(moment());
    u128::try_from(tries).is_ok_and(|tries| tries < TURN.as_millis())
}

/// Not always the same, so that two who wait do not meet for ever.
fn moment() -> Duration {
    Duration::from_micros(fastrand::u64(500..1500))
}
