//! What an attempt's end means for its job. Pure: an outcome goes in, exactly one verb of the store comes out.

use std::time::Duration;

use super::JobTypeOptions;
use crate::queue::{AttemptFailure, Outcome};
use crate::sandbox;

/// The one write that ends an attempt, named after the verb of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `Store::complete` with this result.
    Complete(String),
    /// `Store::fail`.
    Fail(AttemptFailure),
    /// `Store::snooze` for this long.
    Snooze(Duration),
    /// `Store::give_back`.
    GiveBack,
}

/// Decides how the attempt with number `attempt` ends its job's turn.
///
/// `max_attempts` is the job's own limit; `chance`, uniform in 0 to 1, moves the backoff by its jitter.
pub fn decide(
    end: sandbox::GuestOutcome,
    attempt: u32,
    max_attempts: Option<u32>,
    rule: &JobTypeOptions,
    chance: f64,
) -> Verdict {
    use sandbox::GuestOutcome as End;
    let fail = |outcome: Outcome, error: String, asked: Option<Duration>| {
        let next = rule.policy.after_failure(outcome, attempt, max_attempts, asked, chance);
        Verdict::Fail(AttemptFailure { outcome, error, next })
    };
    match end {
        End::Completed(result) => Verdict::Complete(result),
        End::Failed { message, after } => fail(Outcome::Failed, message, after),
        End::Fatal(error) => {
            Verdict::Fail(AttemptFailure { outcome: Outcome::Failed, error, next: crate::queue::Next::Dead })
        }
        End::Snoozed(delay) => Verdict::Snooze(delay),
        End::Trapped(error) => fail(Outcome::Trapped, error, None),
        End::TimedOut(error) => fail(Outcome::TimedOut, error, None),
        End::OutOfFuel(error) => fail(Outcome::OutOfFuel, error, None),
        End::OutOfMemory(error) => fail(Outcome::OutOfMemory, error, None),
        End::Stopped => Verdict::GiveBack,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::queue::Next;
    use crate::sandbox::GuestOutcome as End;

    fn ends() -> impl Strategy<Value = End> {
        let ms = || (0..u64::MAX).prop_map(Duration::from_millis);
        prop_oneof![
            Just(End::Completed("{}".into())),
            proptest::option::of(ms()).prop_map(|after| End::Failed { message: "m".into(), after }),
            Just(End::Fatal("f".into())),
            ms().prop_map(End::Snoozed),
            Just(End::Trapped("t".into())),
            Just(End::TimedOut("t".into())),
            Just(End::OutOfFuel("t".into())),
            Just(End::OutOfMemory("t".into())),
            Just(End::Stopped),
        ]
    }

    proptest! {
        #[test]
        fn a_job_dies_only_of_used_up_attempts_or_fatal_or_dead_on(
            end in ends(), attempt in 1..20_u32, max in proptest::option::of(1..20_u32), fuel_is_final in any::<bool>(),
        ) {
            let mut rule = JobTypeOptions::default();
            if fuel_is_final {
                rule.policy.dead_on = BTreeSet::from([Outcome::OutOfFuel]);
            }
            let fatal = matches!(end, End::Fatal(_)) || (fuel_is_final && matches!(end, End::OutOfFuel(_)));
            let used_up = attempt >= max.unwrap_or(rule.policy.max_attempts);
            if let Verdict::Fail(failure) = decide(end, attempt, max, &rule, 0.5) {
                prop_assert_eq!(failure.next == Next::Dead, fatal || used_up);
            }
        }

        #[test]
        fn the_queue_is_told_the_delay_that_a_handler_names(ms in any::<u64>(), attempt in 1..3_u32) {
            let asked = Duration::from_millis(ms);
            let rule = JobTypeOptions::default();
            let Verdict::Snooze(delay) = decide(End::Snoozed(asked), attempt, None, &rule, 0.5) else { panic!() };
            prop_assert_eq!(delay, asked);
            let failed = End::Failed { message: String::new(), after: Some(asked) };
            let Verdict::Fail(failure) = decide(failed, attempt, Some(9), &rule, 0.5) else { panic!() };
            prop_assert_eq!(failure.next, Next::Retry(asked));
        }
    }
}
