//! The states of a job and every move between them. Pure: no clock, no I/O.

use std::fmt;

/// Where a job stands. The words are a contract: they are the `status` column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Waits for its time and a worker. Entered by enqueue, snooze, give back and retry by hand; left by claim and cancel.
    Pending,
    /// Leased by a worker. A crash of that worker leaves it here until the lease expires and a daemon rescues it.
    Running,
    /// Has a result. Nothing leaves it but retention.
    Completed,
    /// Waits for its next attempt; claimed like a pending job once its backoff is over.
    Failed,
    /// The dead letter: attempts used up, declared fatal, or ended in an outcome of `dead_on`. Only a retry by hand leaves it.
    Dead,
    /// Stopped on request. Only a retry by hand leaves it.
    Cancelled,
}

impl Status {
    /// Every status, in the order the status line prints them.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Dead, Self::Cancelled];

    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the job has ended. Exactly these carry `completed_at`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Dead | Self::Cancelled)
    }

    /// Where `event` takes a job that stands here; `None` when the move is forbidden.
    pub const fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Pending | Self::Failed, Event::Claim) => Some(Self::Running),
            (Self::Running, Event::Complete) => Some(Self::Completed),
            (Self::Running, Event::FailForNow) => Some(Self::Failed),
            (Self::Running, Event::FailForGood) => Some(Self::Dead),
            (Self::Running, Event::Snooze | Event::GiveBack) => Some(Self::Pending),
            (Self::Pending | Self::Failed | Self::Running, Event::Cancel) => Some(Self::Cancelled),
            (Self::Failed | Self::Dead | Self::Cancelled, Event::Retry) => Some(Self::Pending),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What can happen to a job that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker takes it.
    Claim,
    /// Its handler returned a result.
    Complete,
    /// An attempt failed and another one is due later. A lost lease is such a failure.
    FailForNow,
    /// An attempt failed and no other follows.
    FailForGood,
    /// Its handler asked to be called again later.
    Snooze,
    /// A worker that stops hands it back.
    GiveBack,
    /// Somebody stops it.
    Cancel,
    /// Somebody wants it run again.
    Retry,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 8] = [
        Self::Claim,
        Self::Complete,
        Self::FailForNow,
        Self::FailForGood,
        Self::Snooze,
        Self::GiveBack,
        Self::Cancel,
        Self::Retry,
    ];
}

/// How one attempt ended, as the ledger records it. The words are a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The handler returned a result.
    Completed,
    /// The handler answered with an error, or what it returned could not be taken.
    Failed,
    /// The guest trapped: a panic, a stack overflow, an exception it did not catch.
    Trapped,
    /// The attempt ran longer than its timeout.
    TimedOut,
    /// The attempt used up its fuel.
    OutOfFuel,
    /// The attempt wanted more memory than it may have.
    OutOfMemory,
    /// The job was cancelled while the attempt ran.
    Cancelled,
    /// The worker stopped renewing its lease.
    Lost,
    /// The handler asked to be called again later.
    Snoozed,
    /// The daemon stopped and handed the job back.
    GivenBack,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 10] = [
        Self::Completed,
        Self::Failed,
        Self::Trapped,
        Self::TimedOut,
        Self::OutOfFuel,
        Self::OutOfMemory,
        Self::Cancelled,
        Self::Lost,
        Self::Snoozed,
        Self::GivenBack,
    ];

    /// The word in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Trapped => "trapped",
            Self::TimedOut => "timed_out",
            Self::OutOfFuel => "out_of_fuel",
            Self::OutOfMemory => "out_of_memory",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Snoozed => "snoozed",
            Self::GivenBack => "given_back",
        }
    }

    /// The outcome a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// Whether the job failed by it, so that it counts as an attempt and `dead_on` may name it.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Trapped | Self::TimedOut | Self::OutOfFuel | Self::OutOfMemory | Self::Lost)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
        }
    }

    #[test]
    fn only_a_retry_leaves_a_terminal_state_and_nothing_leaves_completed() {
        for status in Status::ALL.into_iter().filter(|s| s.is_terminal()) {
            for event in Event::ALL {
                let leaves = status.after(event).is_some();
                assert_eq!(leaves, event == Event::Retry && status != Status::Completed, "{status} {event:?}");
            }
        }
    }

    #[test]
    fn every_worker_move_starts_from_running() {
        use Event::*;
        for status in Status::ALL {
            for event in [Complete, FailForNow, FailForGood, Snooze, GiveBack] {
                assert_eq!(status.after(event).is_some(), status == Status::Running, "{status} {event:?}");
            }
        }
    }
}
