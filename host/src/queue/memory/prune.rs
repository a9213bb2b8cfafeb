//! Deletes finished jobs that are older than their retention.

use super::table::Table;
use crate::queue::{JobRef, Pruned, Retention, Selected, Status, Timestamp};

impl Table {
    /// Deletes at most `limit` finished jobs that are older than their retention.
    pub fn prune(&mut self, retention: &Retention, limit: usize, now: Timestamp) -> Pruned {
        let old: Vec<JobRef> = self.old(retention, now).take(limit).collect();
        old.iter().for_each(|job| self.delete(*job));
        Pruned { deleted: old.len(), more: old.len() == limit, ..Pruned::default() }
    }

    /// The jobs that [`prune`](Self::prune) would delete without a limit.
    pub fn prunable(&self, retention: &Retention, now: Timestamp) -> Selected {
        self.selected(self.old(retention, now).collect())
    }

    fn old(&self, retention: &Retention, now: Timestamp) -> impl Iterator<Item = JobRef> {
        let kept = [
            (Status::Completed, retention.completed),
            (Status::Cancelled, retention.cancelled),
            (Status::Dead, retention.dead),
        ];
        kept.into_iter().filter_map(move |(status, kept)| Some((status, now.before(kept?)))).flat_map(
            move |(status, horizon)| {
                let first = (status, None, JobRef::from_seq(i64::MIN));
                let last = (status, Some(horizon), JobRef::from_seq(i64::MAX));
                self.indexes.ended.range(first..=last).map(|(.., job)| *job)
            },
        )
    }
}
