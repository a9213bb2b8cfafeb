//! When a pool that drains has nothing left to do: it was quiet, claimed once more, and was quiet again without having run
//! anything in between.
//!
//! The second claim finds what the last attempts left: follow-ups and retries without delay, of which the pool may not have
//! been notified yet.

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Step {
    /// Nothing; look again after the next event.
    Wait,
    /// Claim once more.
    Claim,
    /// Nothing is left to do.
    Drained,
}

/// The state machine.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::worker) struct Drain {
    /// The attempts recorded when the pool was quiet for the last time.
    quiet_at: Option<u64>,
}

impl Drain {
    /// `is_quiet`: nothing is claimed or running, every outcome is recorded, and the last claims left nothing due.
    /// `recorded`: attempts recorded so far.
    pub(in crate::worker) fn look(&mut self, is_quiet: bool, recorded: u64) -> Step {
        if !is_quiet {
            return Step::Wait;
        }
        if self.quiet_at == Some(recorded) {
            return Step::Drained;
        }
        self.quiet_at = Some(recorded);
        Step::Claim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_drained_after_a_second_claim_found_nothing() {
        let mut drain = Drain::default();
        assert_eq!(drain.look(false, 0), Step::Wait);
        assert_eq!(drain.look(true, 3), Step::Claim);
        assert_eq!(drain.look(false, 3), Step::Wait);
        assert_eq!(drain.look(true, 3), Step::Drained);
    }

    #[test]
    fn an_attempt_in_between_asks_for_another_claim() {
        let mut drain = Drain::default();
        assert_eq!(drain.look(true, 3), Step::Claim);
        assert_eq!(drain.look(true, 4), Step::Claim);
        assert_eq!(drain.look(true, 4), Step::Drained);
    }
}
