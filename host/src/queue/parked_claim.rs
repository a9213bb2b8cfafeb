//! A claim that is left with the store, for the next jobs that are added there.
//!
//! A worker that waits with free slots would be told of a new job after its commit and then claim it with another one. A standing
//! claim is made in the transaction that adds the job: it starts one commit and two hand-overs earlier.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::{Claim, Claims, StoreError};

/// Where the answer to a standing claim goes.
pub type ParkedAnswer = oneshot::Sender<Result<Claims, StoreError>>;

/// Both sides' hold on one claim: whoever takes it first, takes it from the other.
#[derive(Clone)]
pub struct ParkedClaim(Arc<Mutex<State>>);

enum State {
    Open(Claim, ParkedAnswer),
    Withdrawn,
    Taken(Instant),
}

impl ParkedClaim {
    /// Makes it, and the way its answer comes.
    pub fn new(claim: Claim) -> (Self, oneshot::Receiver<Result<Claims, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        (Self(Arc::new(Mutex::new(State::Open(claim, answer)))), answered)
    }

    /// Takes it back. `false` when the store has taken it: its answer is on the way.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        let mut state = self.lock();
        let is_open = matches!(*state, State::Open(..));
        if is_open {
            *state = State::Withdrawn;
        }
        is_open
    }

    /// When the store took it, to make it in a transaction that began later; `None` while it has not.
    pub fn taken_at(&self) -> Option<Instant> {
        match *self.lock() {
            State::Taken(at) => Some(at),
            State::Open(..) | State::Withdrawn => None,
        }
    }

    /// For the store: what is to be claimed, and whom to tell; `None` when it was withdrawn.
    pub fn take(&self) -> Option<(Claim, ParkedAnswer)> {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Taken(Instant::now())) {
            State::Open(claim, answer) => Some((claim, answer)),
            other => {
                *state = other;
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
