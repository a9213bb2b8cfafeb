//! How many jobs may be claimed before a slot is free for them.
//!
//! A claim costs a commit, and so does a completion: jobs of microseconds would wait for the disk most of the time.
//! So as much is claimed ahead as will start within [`HORIZON`], judged by how long jobs of the type took lately.
//! A type that has not been measured, or whose jobs are longer than the horizon, is never claimed ahead.

use std::collections::HashMap;
use std::time::Duration;

use crate::queue::JobType;

/// Work that may wait for a slot.
const HORIZON: Duration = Duration::from_millis(20);

/// Jobs that may wait for a slot, however short they are.
const MOST: usize = 1024;

/// How far one shorter run moves the estimate; a longer run replaces it at once.
const WEIGHT: u32 = 8;

/// Measured durations by type.
#[derive(Debug)]
pub(super) struct Ahead {
    cores: u32,
    durations: HashMap<JobType, Duration>,
}

impl Ahead {
    /// Nothing measured yet.
    pub(super) fn new(cores: usize) -> Self {
        Self { cores: u32::try_from(cores).unwrap_or(1).max(1), durations: HashMap::new() }
    }

    /// Takes note of how long one attempt took.
    pub(super) fn measured(&mut self, job_type: &JobType, took: Duration) {
        match self.durations.get_mut(job_type) {
            Some(estimate) if took >= *estimate => *estimate = took,
            Some(estimate) => *estimate -= (*estimate - took) / WEIGHT,
            None => _ = self.durations.insert(job_type.clone(), took),
        }
    }

    /// A job of this type was claimed ahead and found no slot in time; none is again before a run shows that they are free.
    pub(super) fn waited_in_vain(&mut self, job_type: &JobType) {
        self.measured(job_type, HORIZON * (self.cores + 1));
    }

    /// How many jobs of `job_type` may wait for a slot.
    pub(super) fn of(&self, job_type: &str) -> usize {
        let Some(estimate) = self.durations.get(job_type) else { return 0 };
        let one = estimate.as_nanos().max(1);
        usize::try_from((HORIZON * self.cores).as_nanos() / one).unwrap_or(MOST).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job_type() -> JobType {
        JobType::parse("t").unwrap()
    }

    #[test]
    fn nothing_is_claimed_ahead_before_it_was_measured() {
        assert_eq!(Ahead::new(2).of("t"), 0);
    }

    #[test]
    fn short_jobs_are_claimed_ahead_up_to_the_horizon() {
        let mut ahead = Ahead::new(2);
        ahead.measured(&job_type(), Duration::from_millis(1));
        assert_eq!(ahead.of("t"), 40);
        ahead.measured(&job_type(), Duration::from_millis(50));
        assert_eq!(ahead.of("t"), 0, "one long job ends it at once");
    }

    #[test]
    fn a_wait_in_vain_ends_it_until_runs_are_short_again() {
        let mut ahead = Ahead::new(4);
        ahead.measured(&job_type(), Duration::from_micros(10));
        ahead.waited_in_vain(&job_type());
        assert_eq!(ahead.of("t"), 0);
        (0..20).for_each(|_| ahead.measured(&job_type(), Duration::from_micros(10)));
        assert!(ahead.of("t") > 0);
    }

    #[test]
    fn an_estimate_recovers_from_one_slow_run() {
        let mut ahead = Ahead::new(1);
        ahead.measured(&job_type(), Duration::from_secs(1));
        (0..200).for_each(|_| ahead.measured(&job_type(), Duration::from_micros(10)));
        assert_eq!(ahead.of("t"), MOST);
    }
}
