//! Claim: pending, failed → running.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::indexes::ClaimPosition;
use super::table::Table;
use crate::queue::{Claim, Claimed, Claims, Lease, Status, Timestamp, Want};

impl Table {
    /// Leases due jobs in the order of claims.
    pub fn claim(&mut self, claim: &Claim, now: Timestamp) -> Claims {
        let mut scans: Vec<TypeScan> = Vec::with_capacity(claim.wants.len());
        for want in claim.wants.iter().filter(|want| want.is_open(claim.slots)) {
            if scans.iter().all(|scan| scan.want.job_type != want.job_type) {
                scans.push(self.scan(want, now));
            }
        }
        let mut free = claim.slots;
        let mut jobs = Vec::new();
        while let Some((scan, position)) = next(&mut scans, free) {
            jobs.extend(self.lease(position, &scan.want, claim, now));
            scan.want.take_one(&mut free);
            scan.first = None;
            if scan.want.slots > 0 || scan.want.ahead > 0 {
                scan.advance(self.indexes.waiting.get(scan.want.job_type.as_str()), now);
            }
        }
        let next_due = scans.iter().filter(|scan| scan.is_exhausted).filter_map(|scan| scan.next_due).min();
        Claims { jobs, next_due: next_due.map(|instant| instant.since(now)) }
    }

    fn scan(&self, want: &Want, now: Timestamp) -> TypeScan {
        let mut scan =
            TypeScan { want: want.clone(), at: ClaimPosition::FIRST, first: None, next_due: None, is_exhausted: false };
        scan.advance(self.indexes.waiting.get(want.job_type.as_str()), now);
        scan
    }

    fn lease(&mut self, position: ClaimPosition, want: &Want, claim: &Claim, now: Timestamp) -> Option<Claimed> {
        self.change(position.job, |row| {
            let job = &mut row.job;
            job.status = Status::Running;
            job.lease += 1;
            job.lease_until = Some(now.after(claim.lease));
            job.worker = Some(claim.worker.as_str().to_owned());
            job.started_at = Some(now);
            job.progress = None;
            Claimed {
                lease: Lease { job: position.job, token: job.lease, worker: claim.worker.clone() },
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

/// Reads the waiting jobs of one wanted type in order.
struct TypeScan {
    /// How many may still be taken.
    want: Want,
    at: ClaimPosition,
    /// The first job that is due and not taken.
    first: Option<ClaimPosition>,
    /// When the earliest job that was met and is not due will be.
    next_due: Option<Timestamp>,
    /// Whether every due job has been taken.
    is_exhausted: bool,
}

impl TypeScan {
    /// Moves to the next due job.
    fn advance(&mut self, waiting: Option<&BTreeSet<ClaimPosition>>, now: Timestamp) {
        loop {
            let rest = (Bound::Excluded(self.at), Bound::Unbounded);
            let Some(position) = waiting.and_then(|waiting| waiting.range(rest).next()).copied() else {
                self.is_exhausted = true;
                return;
            };
            if position.scheduled_at <= now {
                (self.at, self.first) = (position, Some(position));
                return;
            }
            self.next_due = Some(self.next_due.map_or(position.scheduled_at, |known| known.min(position.scheduled_at)));
            self.at = position.end_of_priority();
        }
    }
}

/// The scan whose first job comes next, among the types that may take one with this many free slots.
fn next(scans: &mut [TypeScan], free: usize) -> Option<(&mut TypeScan, ClaimPosition)> {
    let open = scans.iter_mut().filter(|scan| scan.want.is_open(free));
    open.filter_map(|scan| scan.first.map(|position| (scan, position))).min_by_key(|(_, position)| *position)
}
