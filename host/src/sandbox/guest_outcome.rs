//! How one run of a guest ended.

use std::time::Duration;

/// What a run left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How it ended.
    pub outcome: GuestOutcome,
    /// Wall clock from the start of the guest.
    pub duration: Duration,
    /// Fuel burnt; `None` where it is not counted, and where a guest was interrupted while it computed, which leaves it unknown.
    pub fuel: Option<u64>,
    /// Peak of all memories and tables together, in bytes.
    pub peak_memory: u64,
}

/// How a run ended. A guest can bring about every one of these, so none of them is an error of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestOutcome {
    /// The handler returned a result.
    Completed(String),
    /// The handler answered that it failed, or what it returned could not be taken.
    Failed {
        /// What went wrong.
        message: String,
        /// The delay it asked for; `None` leaves it to the backoff of the type.
        after: Option<Duration>,
    },
    /// The handler answered that no further attempt can help.
    Fatal(String),
    /// The handler asked to be called again after this delay.
    Snoozed(Duration),
    /// The guest trapped; the text carries its last words and its frames.
    Trapped(String),
    /// It ran into its time limit.
    TimedOut(String),
    /// It used up its fuel.
    OutOfFuel(String),
    /// It wanted more memory than its limit.
    OutOfMemory(String),
    /// Somebody stopped it through its [`Tap`](super::Tap).
    Stopped,
}
