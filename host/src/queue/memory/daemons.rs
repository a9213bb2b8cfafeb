//! What the daemons of a queue say about themselves, and what they have started.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::{Daemon, JobRef, Lease, Timestamp, WorkerName};

/// The daemons that have announced or registered themselves.
#[derive(Debug, Default)]
pub(super) struct Daemons {
    announced: BTreeMap<String, Daemon>,
    /// The attempts that each registered worker has started and not ended.
    started: BTreeMap<WorkerName, BTreeSet<(JobRef, i64)>>,
}

impl Daemons {
    pub(super) fn announce(&mut self, mut daemon: Daemon, now: Timestamp) {
        daemon.seen_at = now;
        daemon.plugins.sort_by(|one, other| one.job_type.cmp(&other.job_type));
        let silent_since = now.before(Daemon::FORGOTTEN);
        self.announced.retain(|_, known| known.seen_at >= silent_since);
        self.announced.insert(daemon.worker.clone(), daemon);
    }

    pub(super) fn announced(&self) -> Vec<Daemon> {
        self.announced.values().cloned().collect()
    }

    pub(super) fn register(&mut self, worker: &WorkerName) {
        self.started.entry(worker.clone()).or_default();
    }

    pub(super) fn started(&mut self, lease: &Lease) {
        if let Some(started) = self.started.get_mut(&lease.worker) {
            started.insert((lease.job, lease.token));
        }
    }

    pub(super) fn ended(&mut self, lease: &Lease) {
        if let Some(started) = self.started.get_mut(&lease.worker) {
            started.remove(&(lease.job, lease.token));
        }
    }

    /// Whether the guest of this lease may have started: it has, or its worker never registered.
    pub(super) fn may_have_started(&self, lease: &Lease) -> bool {
        self.started.get(&lease.worker).is_none_or(|started| started.contains(&(lease.job, lease.token)))
    }

    pub(super) fn retire(&mut self, worker: &WorkerName) {
        self.announced.remove(worker.as_str());
        self.started.remove(worker);
    }
}
