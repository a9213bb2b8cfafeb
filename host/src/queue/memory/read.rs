//! Looking at many jobs: lists, selections, counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use super::indexes::ClaimPosition;
use super::table::Table;
use crate::queue::{
    Counts, Filter, Job, JobRef, Order, Overview, Page, Position, Selected, Selection, Status, Timestamp, TypeOverview,
};

impl Table {
    /// A page of jobs, each passed through `show`.
    pub(super) fn list(&self, filter: &Filter, show: impl Fn(&Job) -> Job) -> Page<Job> {
        let mut jobs = self.matching(filter, show);
        let after =
            |job: &Job| filter.after.is_none_or(|after| is_after(position(job, filter.order), after, filter.order));
        jobs.retain(after);
        let more = jobs.len() >= filter.limit;
        jobs.truncate(filter.limit);
        let next = jobs.last().map(|job| position(job, filter.order)).filter(|_| more);
        Page { jobs, next }
    }

    /// All jobs that match the filter, in its order.
    pub(super) fn matching(&self, filter: &Filter, show: impl Fn(&Job) -> Job) -> Vec<Job> {
        let fits =
            |job: &Job| filter.names(job.status) && filter.job_type.as_ref().is_none_or(|name| job.job_type == *name);
        let mut jobs: Vec<Job> = self.jobs().rev().map(show).filter(fits).collect();
        match filter.order {
            Order::Created => {}
            Order::Ended => jobs.sort_by_key(|job| Reverse((job.completed_at, job.reference))),
            Order::Scheduled => jobs.sort_by_key(|job| (job.scheduled_at, job.reference)),
        }
        jobs
    }

    /// The number of jobs in total and of each type.
    pub(super) fn overview(&self, now: Timestamp, show: impl Fn(&Job) -> Job) -> Overview {
        let mut types = BTreeMap::<String, TypeOverview>::new();
        let mut counts = Counts::new();
        for job in self.jobs().map(show) {
            *counts.entry(job.status).or_default() += 1;
            if job.status.is_terminal() && job.status != Status::Dead {
                continue;
            }
            let entry = types.entry(job.job_type.clone()).or_default();
            *entry.counts.entry(job.status).or_default() += 1;
            let is_due = matches!(job.status, Status::Pending | Status::Failed) && job.scheduled_at <= now;
            entry.oldest_due = entry.oldest_due.into_iter().chain(is_due.then_some(job.scheduled_at)).min();
        }
        let types = types.into_iter().map(|(job_type, found)| TypeOverview { job_type, ..found }).collect();
        Overview { counts, types }
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

    /// The number of jobs in each state.
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

fn position(job: &Job, order: Order) -> Position {
    let at = match order {
        Order::Created => None,
        Order::Ended => job.completed_at,
        Order::Scheduled => Some(job.scheduled_at),
    };
    Position { at, job: job.reference }
}

fn is_after(one: Position, other: Position, order: Order) -> bool {
    match order {
        Order::Created | Order::Ended => (one.at, one.job) < (other.at, other.job),
        Order::Scheduled => (one.at, one.job) > (other.at, other.job),
    }
}
