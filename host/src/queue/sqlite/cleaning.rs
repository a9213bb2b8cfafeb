//! How far the cleaning of a queue has come, between two calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::orphans::Walk;
use super::prune::Place;

/// Both walks: over jobs that are old, and over what deleted ones have left.
#[derive(Default)]
pub(super) struct Cleaning(Mutex<(Place, Walk)>);

impl Cleaning {
    pub(super) fn pruned_to(&self) -> Place {
        self.lock().0
    }

    pub(super) fn prune_from(&self, place: Place) {
        self.lock().0 = place;
    }

    pub(super) fn walked(&self) -> Walk {
        self.lock().1
    }

    pub(super) fn walk_from(&self, walk: Walk) {
        self.lock().1 = walk;
    }

    fn lock(&self) -> MutexGuard<'_, (Place, Walk)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
