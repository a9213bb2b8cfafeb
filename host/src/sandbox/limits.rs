//! The limits of one attempt.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Handles that one guest may hold at most; no ordinary guest needs more.
const MAX_HANDLES: usize = 1_000;

/// Handles that a guest gets at least; a language runtime opens about a dozen at its start.
const MIN_HANDLES: usize = 64;

/// File descriptors reserved for the host.
const RESERVED_FDS: u64 = 256;

/// Whether an engine counts fuel. Compiled code only runs on an engine with the same choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metering {
    /// Fuel is counted: budgets are deterministic, CPU-bound guests run up to twice as slow.
    Fuel,
    /// Only the time limit stops a guest.
    Time,
}

/// The limits of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall clock from the start of the guest, waits inside the host included. Default 30 s.
    pub timeout: Duration,
    /// Fuel (about one per instruction); `None` doesn't count any. Default 1,000,000,000,000.
    pub fuel: Option<u64>,
    /// Bytes of all memories and tables together. Default 128 MiB.
    pub memory: usize,
    /// Bytes of the result. Default 1 MiB.
    pub max_result: usize,
    /// Bytes of log lines, stdout and stderr that are kept; the rest is dropped and counted. Default 256 KiB.
    pub max_log: usize,
    /// Bytes of the body of one HTTP response; a longer one is an error for the guest. Default 16 MiB.
    pub max_response: usize,
}

impl Limits {
    /// The engine that these limits need.
    pub const fn metering(&self) -> Metering {
        match self.fuel {
            Some(_) => Metering::Fuel,
            None => Metering::Time,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            fuel: Some(1_000_000_000_000),
            memory: 128 << 20,
            max_result: 1 << 20,
            max_log: 256 << 10,
            max_response: 16 << 20,
        }
    }
}

/// How many handles (files, streams, timers) each of `guests` may hold at once.
///
/// Each handle may be a file descriptor. A process without free descriptors fails in its database and its other guests,
/// so this raises the soft limit as far as the system allows and divides it among the guests.
pub(super) fn handles_per_guest(guests: u32) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::from(guests) * MAX_HANDLES as u64 + RESERVED_FDS;
    let Some(now) = current.filter(|&now| now < wanted) else { return MAX_HANDLES };
    let raised = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    let available = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => now,
    };
    let share = available.saturating_sub(RESERVED_FDS) / u64::from(guests);
    usize::try_from(share).unwrap_or(MAX_HANDLES).clamp(MIN_HANDLES, MAX_HANDLES)
}
