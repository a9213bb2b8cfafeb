//! A worker takes due jobs: pending, failed → running.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::indexes::Spot;
use super::table::Table;
use crate::queue::{Claim, Claimed, Claims, Lease, Status, Timestamp, Want};

impl Table {
    /// Leases due jobs in the order of claims.
    pub fn claim(&mut self, claim: &Claim, now: Timestamp) -> Claims {
        let mut lines: Vec<Line> = Vec::with_capacity(claim.wants.len());
        for want in claim.wants.iter().filter(|want| want.is_open(claim.slots)) {
            if lines.iter().all(|line| line.want.job_type != want.job_type) {
                lines.push(self.line(want, now));
            }
        }
        let mut free = claim.slots;
        let mut jobs = Vec::new();
        while let Some((line, spot)) = next(&mut lines, free) {
            jobs.extend(self.lease(spot, &line.want, claim, now));
            line.want.take_one(&mut free);
            line.front = None;
            if line.want.slots > 0 || line.want.ahead > 0 {
                line.walk(self.indexes.waiting.get(line.want.job_type.as_str()), now);
            }
        }
        let next_due = lines.iter().filter(|line| line.is_walked).filter_map(|line| line.next_due).min();
        Claims { jobs, next_due: next_due.map(|instant| instant.since(now)) }
    }

    fn line(&self, want: &Want, now: Timestamp) -> Line {
        let mut line = Line { want: want.clone(), at: Spot::FIRST, front: None, next_due: None, is_walked: false };
        line.walk(self.indexes.waiting.get(want.job_type.as_str()), now);
        line
    }

    fn lease(&mut self, spot: Spot, want: &Want, claim: &Claim, now: Timestamp) -> Option<Claimed> {
        self.change(spot.job, |row| {
            let job = &mut row.job;
            job.status = Status::Running;
            job.lease += 1;
            job.lease_until = Some(now.after(claim.lease));
            job.worker = Some(claim.worker.as_str().to_owned());
            job.started_at = Some(now);
            job.progress = None;
            Claimed {
                lease: Lease { job: spot.job, token: job.lease, worker: claim.worker.clone() },
                id: job.id.clone(),
                job_type: want.job_type.clone(),
                payload: Ok(job.payload.clone()),
                attempt: job.attempts.saturating_add(1),
                max_attempts: job.max_attempts,
                timeout: job.timeout,
            }
        })
    }
}

/// The walk over the waiting jobs of one wanted type.
struct Line {
    /// What of it may still be taken.
    want: Want,
    at: Spot,
    /// The first one that is due and not taken.
    front: Option<Spot>,
    /// The earliest that was met and is not due.
    next_due: Option<Timestamp>,
    /// Whether everything that is due has been taken.
    is_walked: bool,
}

impl Line {
    /// Goes on to the next one that is due.
    fn walk(&mut self, waiting: Option<&BTreeSet<Spot>>, now: Timestamp) {
        loop {
            let rest = (Bound::Excluded(self.at), Bound::Unbounded);
            let Some(spot) = waiting.and_then(|waiting| waiting.range(rest).next()).copied() else {
                self.is_walked = true;
                return;
            };
            if spot.scheduled_at <= now {
                (self.at, self.front) = (spot, Some(spot));
                return;
            }
            self.next_due = Some(self.next_due.map_or(spot.scheduled_at, |known| known.min(spot.scheduled_at)));
            self.at = spot.end_of_priority();
        }
    }
}

/// The line whose front comes next, of those that may take it beside so many free slots.
fn next(lines: &mut [Line], free: usize) -> Option<(&mut Line, Spot)> {
    let fronts = lines.iter_mut().filter(|line| line.want.is_open(free));
    fronts.filter_map(|line| line.front.map(|spot| (line, spot))).min_by_key(|(_, spot)| *spot)
}
