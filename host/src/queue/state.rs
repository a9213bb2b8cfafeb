//! The state machine of a job. Pure: no clock, no I/O.

use std::fmt;

/// The state of a job. The words are a contract: the `status` column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Waits until it is due and a worker claims it. Entered by enqueue, snooze, give back and retry by hand.
    Pending,
    /// Leased by a worker. If that worker crashes, a daemon rescues the job.
    Running,
    /// Has a result. Final; deleted after its retention.
    Completed,
    /// Waits for its next attempt; claimed like a pending job once its backoff is over.
    Failed,
    /// Dead letter: its attempts are used up, its handler returned a fatal error, or `dead_on` names the outcome. Only a retry
    /// by hand leaves it.
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

    /// Parses the word in the table.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the job has ended. Exactly these have `completed_at`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Dead | Self::Cancelled)
    }

    /// The state after `event`; `None` if the transition is forbidden.
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

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker leases it.
    Claim,
    /// Its handler returned a result.
    Complete,
    /// An attempt failed or was lost, and there will be another.
    FailForNow,
    /// An attempt failed, and it was the last.
    FailForGood,
    /// Its handler asked to be called again later.
    Snooze,
    /// A worker that shuts down returns it.
    GiveBack,
    /// It is cancelled on request.
    Cancel,
    /// It is retried by hand.
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

/// How one attempt ended, as in the attempts table. The words are a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The handler returned a result.
    Completed,
    /// The handler returned an error or an invalid result.
    Failed,
    /// The guest trapped: a panic, a stack overflow, an uncaught exception.
    Trapped,
    /// The attempt ran longer than its timeout.
    TimedOut,
    /// The attempt used up its fuel.
    OutOfFuel,
    /// The attempt exceeded its memory limit.
    OutOfMemory,
    /// The job was cancelled while the attempt ran.
    Cancelled,
    /// The worker died or stopped renewing its lease.
    Lost,
    /// The handler asked to be called again later.
    Snoozed,
    /// The daemon shut down and returned the job.
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

    /// The word in the attempts table.
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

    /// Parses the word in the attempts table.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// Whether it is a failure, which counts as an attempt and may be named by `dead_on`.
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
    fn every_word_parses_back() {
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
    fn every_transition_by_a_worker_starts_from_running() {
        use Event::*;
        for status in Status::ALL {
            for event in [Complete, FailForNow, FailForGood, Snooze, GiveBack] {
                assert_eq!(status.after(event).is_some(), status == Status::Running, "{status} {event:?}");
            }
        }
    }
}
