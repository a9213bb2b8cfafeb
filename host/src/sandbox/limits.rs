//! What one attempt may use.

use std::time::Duration;

/// Whether an engine counts fuel. Compiled code fits only an engine with the same choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metering {
    /// Fuel is counted: budgets are deterministic, CPU-bound guests run up to twice as slow.
    Fuel,
    /// Only time stops a guest.
    Time,
}

/// The limits of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall clock from the start of the guest, waits inside the host included. Default 30 s.
    pub timeout: Duration,
    /// Fuel (about one per instruction); `None` counts none. Default 1,000,000,000,000.
    pub fuel: Option<u64>,
    /// Bytes of all memories and tables together. Default 128 MiB.
    pub memory: usize,
    /// Bytes of the result. Default 1 MiB.
    pub max_result: usize,
    /// Bytes of log lines, stdout and stderr that are kept; what comes after is swallowed and counted. Default 256 KiB.
    pub max_log: usize,
    /// Bytes of the body of one HTTP response that the guest gets; a longer one is an error to it. Default 16 MiB.
    pub max_response: usize,
}

impl Limits {
    /// The engine these limits need.
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
