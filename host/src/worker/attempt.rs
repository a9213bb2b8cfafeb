//! Decides what the end of an attempt means for its job. Pure: an outcome goes in, exactly one store call comes out.

use std::time::Duration;

use super::JobTypeOptions;
use crate::queue::{AttemptFailure, Next, Outcome};
use crate::sandbox::GuestOutcome;

/// How long a job waits when the host had no room for it. Up to as much again is added, so that jobs don't return together.
const SHORTAGE_DELAY: Duration = Duration::from_secs(5);

/// The store call that ends an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// `Store::complete` with this result.
    Complete(String),
    /// `Store::fail`.
    Fail(AttemptFailure),
    /// `Store::snooze` for this long.
    Snooze(Duration),
    /// `Store::give_back`.
    GiveBack,
}

impl AttemptEnd {
    /// The outcome that the ledger records.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Complete(_) => Outcome::Completed,
            Self::Fail(failure) => failure.outcome,
            Self::Snooze(_) => Outcome::Snoozed,
            Self::GiveBack => Outcome::GivenBack,
        }
    }

    /// The result of the job.
    pub fn result(&self) -> Option<&str> {
        if let Self::Complete(result) = self { Some(result) } else { None }
    }

    /// The error of the attempt.
    pub fn error(&self) -> Option<&str> {
        if let Self::Fail(failure) = self { Some(&failure.error) } else { None }
    }
}

/// Decides how the attempt with number `attempt` ends.
///
/// `max_attempts` is the job's own limit. `chance`, uniform in 0 to 1, sets the jitter of delays.
pub fn decide(
    outcome: GuestOutcome,
    attempt: u32,
    max_attempts: Option<u32>,
    type_options: &JobTypeOptions,
    chance: f64,
) -> AttemptEnd {
    let fail = |outcome: Outcome, error: String, requested: Option<Duration>| {
        let next = type_options.policy.after_failure(outcome, attempt, max_attempts, requested, chance);
        AttemptEnd::Fail(AttemptFailure { outcome, error, next })
    };
    match outcome {
        GuestOutcome::Completed(result) => AttemptEnd::Complete(result),
        GuestOutcome::Failed { message, after } => fail(Outcome::Failed, message, after),
        GuestOutcome::Fatal(error) => {
            AttemptEnd::Fail(AttemptFailure { outcome: Outcome::Failed, error, next: Next::Dead })
        }
        GuestOutcome::Snoozed(delay) => AttemptEnd::Snooze(delay),
        GuestOutcome::Trapped(error) => fail(Outcome::Trapped, error, None),
        GuestOutcome::TimedOut(error) => fail(Outcome::TimedOut, error, None),
        GuestOutcome::OutOfFuel(error) => fail(Outcome::OutOfFuel, error, None),
        GuestOutcome::OutOfMemory(error) => fail(Outcome::OutOfMemory, error, None),
        GuestOutcome::HostShortage(_) => AttemptEnd::Snooze(SHORTAGE_DELAY.mul_f64(1.0 + chance.clamp(0.0, 1.0))),
        GuestOutcome::Stopped => AttemptEnd::GiveBack,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::sandbox::GuestOutcome as End;

    fn outcomes() -> impl Strategy<Value = End> {
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
            Just(End::HostShortage("h".into())),
            Just(End::Stopped),
        ]
    }

    proptest! {
        #[test]
        fn a_job_dies_only_of_used_up_attempts_or_fatal_or_dead_on(
            end in outcomes(), attempt in 1..20_u32, max in proptest::option::of(1..20_u32), fuel_is_final in any::<bool>(),
        ) {
            let mut type_options = JobTypeOptions::default();
            if fuel_is_final {
                type_options.policy.dead_on = BTreeSet::from([Outcome::OutOfFuel]);
            }
            let fatal = matches!(end, End::Fatal(_)) || (fuel_is_final && matches!(end, End::OutOfFuel(_)));
            let used_up = attempt >= max.unwrap_or(type_options.policy.max_attempts);
            if let AttemptEnd::Fail(failure) = decide(end, attempt, max, &type_options, 0.5) {
                prop_assert_eq!(failure.next == Next::Dead, fatal || used_up);
            }
        }

        #[test]
        fn the_delay_that_a_handler_requests_is_passed_on(ms in any::<u64>(), attempt in 1..3_u32) {
            let requested = Duration::from_millis(ms);
            let type_options = JobTypeOptions::default();
            let AttemptEnd::Snooze(delay) = decide(End::Snoozed(requested), attempt, None, &type_options, 0.5) else { panic!() };
            prop_assert_eq!(delay, requested);
            let failed = End::Failed { message: String::new(), after: Some(requested) };
            let AttemptEnd::Fail(failure) = decide(failed, attempt, Some(9), &type_options, 0.5) else { panic!() };
            prop_assert_eq!(failure.next, Next::Retry(requested));
        }

        #[test]
        fn a_shortage_of_the_host_never_costs_an_attempt(attempt in 1..20_u32, chance in 0.0..=1.0) {
            let end = decide(End::HostShortage("no memory".into()), attempt, Some(1), &JobTypeOptions::default(), chance);
            let AttemptEnd::Snooze(delay) = end else { panic!() };
            prop_assert!((SHORTAGE_DELAY..=2 * SHORTAGE_DELAY).contains(&delay), "{:?}", delay);
        }
    }
}
