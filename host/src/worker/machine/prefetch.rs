//! How many jobs may be claimed before a slot is free for them.
//!
//! A claim costs a commit, and so does a completion: jobs of microseconds would wait for the disk most of the time.
//! So as much is claimed ahead as will start within [`HORIZON`], judged by how long jobs of the type took lately.
//! A type that has not been measured, or whose jobs are longer than the horizon, is never claimed ahead.

use std::collections::HashMap;
use std::time::Duration;

use crate::queue::JobType;

/// Work that may wait for a slot.
pub(in crate::worker) const HORIZON: Duration = Duration::from_millis(20);

/// Jobs that may wait for a slot, however short they are.
const MOST: usize = 1024;

/// How far one shorter run moves the estimate; a longer run replaces it at once.
const WEIGHT: u32 = 8;

/// Measured durations by type.
#[derive(Debug)]
pub(super) struct Prefetch {
    cores: usize,
    durations: HashMap<JobType, Duration>,
}

impl Prefetch {
    /// Nothing measured yet. At most `cores` jobs make progress at once, however many slots there are.
    pub(super) fn new(cores: usize) -> Self {
        Self { cores: cores.max(1), durations: HashMap::new() }
    }

    /// Takes note of how long one attempt took.
    pub(super) fn measured(&mut self, job_type: &JobType, took: Duration) {
        match self.durations.get_mut(job_type) {
            Some(estimate) if took >= *estimate => *estimate = took,
            Some(estimate) => *estimate -= (*estimate - took) / WEIGHT,
            None => _ = self.durations.insert(job_type.clone(), took),
        }
    }

    /// A job of this type was claimed ahead and found no slot in time; none is again before runs show that they are free.
    pub(super) fn no_slot_in_time(&mut self, job_type: &JobType) {
        let cores = u32::try_from(self.cores).unwrap_or(u32::MAX - 1);
        self.measured(job_type, HORIZON * (cores + 1));
    }

    /// How many jobs of `job_type` may wait for a slot, when at most `at_once` of them run at once and the horizon is
    /// shared with `sharers - 1` other types.
    pub(super) fn of(&self, job_type: &JobType, at_once: usize, sharers: usize) -> usize {
        let Some(estimate) = self.durations.get(job_type) else { return 0 };
        let cpu_runtime = self.cores.min(at_once) as u128;
        let work = HORIZON.as_nanos() * cpu_runtime / sharers.max(1) as u128;
        usize::try_from(work / estimate.as_nanos().max(1)).unwrap_or(MOST).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job_type() -> JobType {
        JobType::parse("t").unwrap()
    }

    fn ahead(cores: usize, took: Duration) -> Prefetch {
        let mut ahead = Prefetch::new(cores);
        ahead.measured(&job_type(), took);
        ahead
    }

    #[test]
    fn nothing_is_claimed_ahead_before_it_was_measured() {
        assert_eq!(Prefetch::new(2).of(&job_type(), 8, 1), 0);
    }

    #[test]
    fn short_jobs_are_claimed_ahead_up_to_the_horizon() {
        let mut ahead = ahead(2, Duration::from_millis(1));
        assert_eq!(ahead.of(&job_type(), 8, 1), 40);
        assert_eq!(ahead.of(&job_type(), 8, 4), 10, "types share the horizon");
        ahead.measured(&job_type(), Duration::from_millis(50));
        assert_eq!(ahead.of(&job_type(), 8, 1), 0, "one long job ends it at once");
    }

    #[test]
    fn a_type_that_runs_one_at_a_time_is_claimed_ahead_for_one_core() {
        assert_eq!(ahead(16, Duration::from_millis(1)).of(&job_type(), 1, 1), 20);
    }

    #[test]
    fn jobs_that_found_no_slot_end_it_until_runs_are_short_again() {
        let mut ahead = ahead(4, Duration::from_micros(10));
        ahead.no_slot_in_time(&job_type());
        assert_eq!(ahead.of(&job_type(), 8, 1), 0);
        (0..20).for_each(|_| ahead.measured(&job_type(), Duration::from_micros(10)));
        assert!(ahead.of(&job_type(), 8, 1) > 0);
    }

    #[test]
    fn an_estimate_recovers_from_one_slow_run() {
        let mut ahead = ahead(1, Duration::from_secs(1));
        (0..200).for_each(|_| ahead.measured(&job_type(), Duration::from_micros(10)));
        assert_eq!(ahead.of(&job_type(), 8, 1), MOST);
    }
}
