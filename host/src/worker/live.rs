//! The attempts this pool holds a lease for, from the claim until their end is on record.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::queue::Lease;
use crate::sandbox::Tap;

/// All live leases and how far each is.
#[derive(Default)]
pub(super) struct Live {
    attempts: Mutex<HashMap<Lease, Stage>>,
}

enum Stage {
    /// Claimed; no guest yet.
    Ready,
    /// Its guest runs, or has run and its end is being written.
    Running(Arc<Tap>),
    /// No guest yet, and none shall start: the lease no longer holds.
    Stale,
}

impl Live {
    /// A lease has been claimed.
    pub(super) fn add(&self, lease: Lease) {
        self.lock().insert(lease, Stage::Ready);
    }

    /// Its guest wants to start; `false` when it must not, for the lease no longer holds.
    pub(super) fn start(&self, lease: &Lease, tap: &Arc<Tap>) -> bool {
        match self.lock().get_mut(lease) {
            Some(Stage::Stale) | None => false,
            Some(stage) => {
                *stage = Stage::Running(tap.clone());
                true
            }
        }
    }

    /// The lease no longer holds. Returns the tap of the guest that runs on it.
    pub(super) fn stale(&self, lease: &Lease) -> Option<Arc<Tap>> {
        match self.lock().get_mut(lease)? {
            Stage::Running(tap) => Some(tap.clone()),
            stage => {
                *stage = Stage::Stale;
                None
            }
        }
    }

    /// Its end is on record, or it was given back.
    pub(super) fn remove(&self, lease: &Lease) {
        self.lock().remove(lease);
    }

    /// Every live lease.
    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().keys().cloned().collect()
    }

    /// The taps of all running attempts.
    pub(super) fn taps(&self) -> Vec<(Lease, Arc<Tap>)> {
        let running = |(lease, stage): (&Lease, &Stage)| match stage {
            Stage::Running(tap) => Some((lease.clone(), tap.clone())),
            Stage::Ready | Stage::Stale => None,
        };
        self.lock().iter().filter_map(running).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Lease, Stage>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
