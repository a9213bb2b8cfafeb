//! What follows a failed or lost attempt: a retry after a backoff, or the dead letter. Pure: randomness is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{JobType, Outcome, Status, Timestamp};

/// Delay before the next attempt: `min(max, base * 2^(attempts - 1))`, then up to ± `jitter` of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Delay after the first failed attempt. Default 5 s.
    pub base: Duration,
    /// The most it grows to, before jitter. Default 1 h.
    pub max: Duration,
    /// Share of the delay that is added or subtracted at random, 0 to 1. Default 0.1.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(5), max: Duration::from_secs(3600), jitter: 0.1 }
    }
}

impl Backoff {
    /// The delay after `attempts` failed attempts. `chance` is random, uniform in 0 to 1.
    pub fn delay(&self, attempts: u32, chance: f64) -> Duration {
        let doublings = attempts.saturating_sub(1);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let delay = self.base.saturating_mul(factor).min(self.max);
        let swing = self.jitter.clamp(0.0, 1.0) * (2.0 * chance.clamp(0.0, 1.0) - 1.0);
        Duration::try_from_secs_f64(delay.as_secs_f64() * (1.0 + swing)).unwrap_or(delay)
    }
}

/// The longest delay before another attempt, whoever sets it.
const LONGEST_DELAY: Duration = Duration::from_secs(366 * 86_400);

/// A handler that snoozed for less would keep the queue busy.
const SHORTEST_SNOOZE: Duration = Duration::from_millis(100);

/// The delay after a handler snoozed for `asked`: between 100 ms and 366 days.
pub fn snooze_delay(asked: Duration) -> Duration {
    asked.clamp(SHORTEST_SNOOZE, LONGEST_DELAY)
}

/// How a job type retries.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts before a job is dead, unless the job has its own limit. At least 1; default 3.
    pub max_attempts: u32,
    /// Delay between attempts.
    pub backoff: Backoff,
    /// Outcomes after which a job is dead at once.
    pub dead_on: BTreeSet<Outcome>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: Backoff::default(), dead_on: BTreeSet::new() }
    }
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Due again after this delay, at most 366 days.
    Retry(Duration),
    /// No further attempt.
    Dead,
}

impl Next {
    /// The state of the job.
    pub(super) const fn status(self) -> Status {
        match self {
            Self::Retry(_) => Status::Failed,
            Self::Dead => Status::Dead,
        }
    }

    /// When it is due again; `None` if that does not change.
    pub(super) fn due(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Retry(delay) => Some(now.after(delay.min(LONGEST_DELAY))),
            Self::Dead => None,
        }
    }
}

impl RetryPolicy {
    /// What follows when attempt number `attempt` (the first is 1) failed with `outcome`.
    ///
    /// `max_attempts` is the job's own limit. `asked` is a delay set by the handler, which replaces the backoff.
    pub fn after_failure(
        &self,
        outcome: Outcome,
        attempt: u32,
        max_attempts: Option<u32>,
        asked: Option<Duration>,
        chance: f64,
    ) -> Next {
        if attempt >= max_attempts.unwrap_or(self.max_attempts) || self.dead_on.contains(&outcome) {
            return Next::Dead;
        }
        Next::Retry(asked.unwrap_or_else(|| self.backoff.delay(attempt, chance)))
    }

    /// The job's own limit of attempts after a retry by hand, which allows at least one more.
    pub(super) fn limit_for_retry(&self, attempts: u32, own: Option<u32>) -> Option<u32> {
        let one_more = attempts.saturating_add(1);
        match own {
            Some(max) => Some(max.max(one_more)),
            None if self.max_attempts >= one_more => None,
            None => Some(one_more),
        }
    }
}

/// The policy of every job type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryPolicies {
    /// For types without one of their own.
    pub default: RetryPolicy,
    /// By type.
    pub by_type: BTreeMap<JobType, RetryPolicy>,
}

impl RetryPolicies {
    /// The policy of `job_type`, which may be any text that a foreign program stored.
    pub fn of(&self, job_type: &str) -> &RetryPolicy {
        self.by_type.get(job_type).unwrap_or(&self.default)
    }

    /// What follows when the attempt after `attempts` others was lost.
    pub(super) fn after_loss(&self, job_type: &str, attempts: u32, own_limit: Option<u32>, chance: f64) -> Next {
        self.of(job_type).after_failure(Outcome::Lost, attempts.saturating_add(1), own_limit, None, chance)
    }
}

/// Why an attempt is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCause {
    LeaseExpired,
    WorkerDied,
}

impl LossCause {
    /// The error of the job.
    pub(super) fn error(self, worker: Option<&str>) -> String {
        match (worker, self) {
            (Some(worker), Self::WorkerDied) => format!("lost: worker `{worker}` died"),
            (Some(worker), Self::LeaseExpired) => format!("lost: worker `{worker}` stopped renewing its lease"),
            (None, _) => "lost: its worker stopped renewing the lease".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_backoff_doubles_from_its_base() {
        let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
        let seconds: Vec<u64> = (1..=4).map(|attempts| backoff.delay(attempts, 0.5).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40]);
    }

    proptest! {
        #[test]
        fn a_backoff_never_overflows_and_stays_within_its_cap(
            base in 0..=u64::MAX / 1000, max in 0..=366_u64 * 86_400_000, jitter in 0.0..=1.0_f64,
            attempts in 0..=u32::MAX, chance in 0.0..=1.0_f64,
        ) {
            let max = Duration::from_millis(max);
            let backoff = Backoff { base: Duration::from_millis(base), max, jitter };
            let delay = backoff.delay(attempts, chance);
            prop_assert!(delay <= max.mul_f64(1.0 + jitter) + Duration::from_millis(1));
        }

        #[test]
        fn without_jitter_a_backoff_never_shrinks(base in 1..100_000_u64, attempts in 1..100_u32) {
            let backoff = Backoff { base: Duration::from_millis(base), jitter: 0.0, ..Backoff::default() };
            prop_assert!(backoff.delay(attempts, 0.5) <= backoff.delay(attempts + 1, 0.5));
        }

        #[test]
        fn delays_set_by_a_handler_are_bounded(ms in any::<u64>()) {
            let asked = Duration::from_millis(ms);
            let (now, year_and_day) = (Timestamp::from_millis(0), Duration::from_secs(366 * 86_400));
            let snooze = snooze_delay(asked);
            prop_assert!(snooze >= Duration::from_millis(100) && snooze <= year_and_day);
            prop_assert!(snooze == asked || asked < Duration::from_millis(100) || asked > year_and_day);
            prop_assert_eq!(Next::Retry(asked).due(now), Some(now.after(asked.min(year_and_day))));
        }

        #[test]
        fn a_job_is_dead_only_when_its_attempts_are_used_up_or_dead_on_says_so(
            attempt in 1..=u32::MAX, max in 1..=u32::MAX, named in any::<bool>(),
        ) {
            let dead_on = if named { BTreeSet::from([Outcome::TimedOut]) } else { BTreeSet::new() };
            let policy = RetryPolicy { dead_on, ..RetryPolicy::default() };
            let next = policy.after_failure(Outcome::TimedOut, attempt, Some(max), None, 0.5);
            prop_assert_eq!(next == Next::Dead, attempt >= max || named);
        }
    }
}
