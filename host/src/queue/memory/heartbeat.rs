//! What a heartbeat writes about running attempts: longer leases, log lines and progress.

use std::time::Duration;

use super::table::Table;
use crate::queue::{Lease, Progress, StaleLease, Status, Timestamp};

impl Table {
    /// Extends leases and returns those that are no longer valid.
    pub fn renew(&mut self, leases: &[Lease], hold: Duration, now: Timestamp) -> Vec<StaleLease> {
        for lease in leases {
            self.change_held(lease, |row| row.job.lease_until = Some(now.after(hold)));
        }
        self.stale(leases)
    }

    /// Returns those of `leases` that are no longer valid.
    pub fn stale(&self, leases: &[Lease]) -> Vec<StaleLease> {
        let stale = |lease: &Lease| {
            let status = self.rows.get(&lease.job).filter(|row| row.holds(lease)).map(|row| row.job.status);
            let cancelled = status == Some(Status::Cancelled);
            (status != Some(Status::Running)).then(|| StaleLease { lease: lease.clone(), cancelled })
        };
        leases.iter().filter_map(stale).collect()
    }

    /// Writes the log lines and progress of running attempts.
    pub fn save_progress(&mut self, progress: Vec<Progress>) {
        for Progress { lease, lines, progress } in progress {
            let Some(row) = self.held(&lease) else { continue };
            row.history.log(lease.token, row.job.attempts.saturating_add(1), lines);
            row.job.progress = progress.or(row.job.progress.take());
        }
    }
}
