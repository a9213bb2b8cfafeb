//! A parked claim waits in the store until jobs are added.
//!
//! Without it, a worker with free slots would hear of a new job after its commit and claim it with a second one. A parked claim
//! runs in the transaction that adds the job, which saves a commit and two thread switches.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::{Claim, Claims, StoreError};

/// Where the reply to a parked claim goes.
pub type ParkedAnswer = oneshot::Sender<Result<Claims, StoreError>>;

/// A claim shared by worker and store. The first that takes it gets it.
#[derive(Clone)]
pub struct ParkedClaim(Arc<Mutex<State>>);

enum State {
    Open(Claim, ParkedAnswer),
    Withdrawn,
    Taken(Instant),
}

impl ParkedClaim {
    /// Creates one, and the receiver of its reply.
    pub fn new(claim: Claim) -> (Self, oneshot::Receiver<Result<Claims, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        (Self(Arc::new(Mutex::new(State::Open(claim, answer)))), answered)
    }

    /// Takes the claim back. `false` if the store has taken it and will reply.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        let mut state = self.lock();
        let is_open = matches!(*state, State::Open(..));
        if is_open {
            *state = State::Withdrawn;
        }
        is_open
    }

    /// When the store took the claim, before it began the transaction; `None` if it hasn't.
    pub fn taken_at(&self) -> Option<Instant> {
        match *self.lock() {
            State::Taken(at) => Some(at),
            State::Open(..) | State::Withdrawn => None,
        }
    }

    /// For the store: the claim and where to reply; `None` if it was withdrawn.
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
        self.0.lock()
    }
}
