//! Looking at many jobs: lists, selections, counts.

use std::ops::Bound;
use std::time::Duration;

use super::indexes::ClaimPosition;
use super::table::Table;
use crate::queue::{Counts, Filter, Job, JobRef, Selected, Selection, Status, Timestamp};

impl Table {
    /// Jobs, newest first.
    pub fn list<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a Job> {
        let fits = |job: &&Job| {
            filter.status.is_none_or(|status| job.status == status)
                && filter.job_type.as_ref().is_none_or(|name| job.job_type == *name)
        };
        self.jobs().rev().filter(fits).take(filter.limit)
    }

    /// Which jobs `selection` names: those that ended or are due first before the others.
    pub fn select(&self, selection: &Selection, now: Timestamp) -> Selected {
        let by_age = selection.older_than.map(|age| now.before(age));
        // `before` leaves its own instant out.
        let by_instant = selection.before.map(|instant| instant.before(Duration::from_millis(1)));
        let horizon = by_age.into_iter().chain(by_instant).min();
        let fits = |job: &&Job| {
            selection.job_type.as_ref().is_none_or(|name| job.job_type == *name)
                && horizon.is_none_or(|horizon| job.completed_at.unwrap_or(job.created_at) <= horizon)
        };
        let states = Status::ALL.into_iter().filter(|status| selection.states.contains(status));
        let named = states.flat_map(|status| self.of_state(status)).filter(fits);
        self.selected(named.take(selection.limit).map(|job| job.reference).collect())
    }

    /// Whether a job of `job_type` waits that is due.
    pub fn has_due(&self, job_type: &str, now: Timestamp) -> bool {
        let Some(waiting) = self.indexes.waiting.get(job_type) else { return false };
        let mut at = ClaimPosition::FIRST;
        while let Some(spot) = waiting.range((Bound::Excluded(at), Bound::Unbounded)).next() {
            if spot.scheduled_at <= now {
                return true;
            }
            at = spot.end_of_priority();
        }
        false
    }

    /// How many jobs have not ended.
    pub fn unfinished(&self) -> usize {
        self.rows.len() - self.indexes.ended.len()
    }

    /// How many jobs stand in each state.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::new();
        for job in self.jobs() {
            *counts.entry(job.status).or_default() += 1;
        }
        counts
    }

    /// How many waiting jobs are not due and come due `within` this time.
    pub fn due_within(&self, within: Duration, now: Timestamp) -> u64 {
        let is_due = |spot: &&ClaimPosition| spot.scheduled_at > now && spot.scheduled_at <= now.after(within);
        self.indexes.waiting.values().flatten().filter(is_due).count() as u64
    }

    pub(super) fn selected(&self, jobs: Vec<JobRef>) -> Selected {
        let first = jobs.iter().take(Selected::FIRST).filter_map(|job| self.rows.get(job));
        let first = first.map(|row| row.job.id.clone()).collect();
        Selected { jobs, first }
    }

    /// The jobs of one state in the order in which a selection takes them.
    fn of_state(&self, status: Status) -> Vec<&Job> {
        let references: Vec<JobRef> = match status {
            Status::Pending | Status::Failed => self.indexes.waiting.values().flatten().map(|spot| spot.job).collect(),
            Status::Running => self.indexes.running.iter().map(|(_, job)| *job).collect(),
            Status::Completed | Status::Dead | Status::Cancelled => {
                self.indexes.ended.iter().map(|(.., job)| *job).collect()
            }
        };
        let jobs = references.iter().filter_map(|job| self.rows.get(job)).map(|row| &row.job);
        jobs.filter(|job| job.status == status).collect()
    }
}
