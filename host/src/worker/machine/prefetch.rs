//! How many jobs to claim ahead of free slots.
//!
//! A claim costs a commit, so jobs that take microseconds would spend most of their time waiting for the disk. Therefore the
//! pool claims ahead as many jobs as should start within [`HORIZON`], estimated from recent durations of their type.
//! A type without measurements, or with jobs longer than the horizon, is never claimed ahead.

use std::collections::HashMap;
use std::time::Duration;

use crate::queue::JobType;

/// How much work may wait for a slot.
pub(in crate::worker) const HORIZON: Duration = Duration::from_millis(20);

/// The most jobs of one type that may wait for a slot, however short they are.
const MOST: usize = 1024;

/// A shorter run lowers the estimate by this fraction of the difference. A longer run replaces it at once.
const WEIGHT: u32 = 8;

/// Estimated durations by type.
#[derive(Debug)]
pub(super) struct Prefetch {
    cores: usize,
    estimates: HashMap<JobType, Duration>,
}

impl Prefetch {
    /// Without measurements. At most `cores` jobs make progress at once, however many slots there are.
    pub(super) fn new(cores: usize) -> Self {
        Self { cores: cores.max(1), estimates: HashMap::new() }
    }

    /// Records how long one attempt took.
    pub(super) fn measured(&mut self, job_type: &JobType, took: Duration) {
        match self.estimates.get_mut(job_type) {
            Some(estimate) if took >= *estimate => *estimate = took,
            Some(estimate) => *estimate -= (*estimate - took) / WEIGHT,
            None => _ = self.estimates.insert(job_type.clone(), took),
        }
    }

    /// A job of this type was claimed ahead and got no slot in time. No more are claimed ahead until short runs lower the
    /// estimate again.
    pub(super) fn no_slot_in_time(&mut self, job_type: &JobType) {
        let cores = u32::try_from(self.cores).unwrap_or(u32::MAX - 1);
        self.measured(job_type, HORIZON * (cores + 1));
    }

    /// How many jobs of `job_type` may wait for a slot if at most `at_once` of them run at once and `sharers` types share the
    /// horizon.
    pub(super) fn of(&self, job_type: &JobType, at_once: usize, sharers: usize) -> usize {
        let Some(estimate) = self.estimates.get(job_type) else { return 0 };
        let parallel = self.cores.min(at_once) as u128;
        let work = HORIZON.as_nanos() * parallel / sharers.max(1) as u128;
        usize::try_from(work / estimate.as_nanos().max(1)).unwrap_or(MOST).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job_type() -> JobType {
        JobType::parse("t").unwrap()
    }

    fn prefetch(cores: usize, took: Duration) -> Prefetch {
        let mut prefetch = Prefetch::new(cores);
        prefetch.measured(&job_type(), took);
        prefetch
    }

    #[test]
    fn an_unmeasured_type_is_not_claimed_ahead() {
        assert_eq!(Prefetch::new(2).of(&job_type(), 8, 1), 0);
    }

    #[test]
    fn short_jobs_are_claimed_ahead_up_to_the_horizon() {
        let mut prefetch = prefetch(2, Duration::from_millis(1));
        assert_eq!(prefetch.of(&job_type(), 8, 1), 40);
        assert_eq!(prefetch.of(&job_type(), 8, 4), 10, "types share the horizon");
        prefetch.measured(&job_type(), Duration::from_millis(50));
        assert_eq!(prefetch.of(&job_type(), 8, 1), 0, "one long job stops it at once");
    }

    #[test]
    fn a_type_that_runs_one_at_a_time_is_claimed_ahead_for_one_core() {
        assert_eq!(prefetch(16, Duration::from_millis(1)).of(&job_type(), 1, 1), 20);
    }

    #[test]
    fn after_a_job_got_no_slot_none_are_claimed_ahead_until_runs_are_short_again() {
        let mut prefetch = prefetch(4, Duration::from_micros(10));
        prefetch.no_slot_in_time(&job_type());
        assert_eq!(prefetch.of(&job_type(), 8, 1), 0);
        (0..20).for_each(|_| prefetch.measured(&job_type(), Duration::from_micros(10)));
        assert!(prefetch.of(&job_type(), 8, 1) > 0);
    }

    #[test]
    fn an_estimate_recovers_from_one_slow_run() {
        let mut prefetch = prefetch(1, Duration::from_secs(1));
        (0..200).for_each(|_| prefetch.measured(&job_type(), Duration::from_micros(10)));
        assert_eq!(prefetch.of(&job_type(), 8, 1), MOST);
    }
}
