//! A queue in memory, for tests of applications and of the worker. It behaves like the one in a file.
//!
//! [`Table`] is the queue as a value, without clock, randomness or I/O, so that a simulation can drive it. [`MemoryStore`]
//! implements [`Store`](crate::queue::Store) with it.

mod cancel;
mod claim;
mod daemons;
mod end_attempt;
mod enqueue;
mod heartbeat;
mod history;
mod indexes;
mod prune;
mod read;
mod rescue;
mod retry;
mod store;
mod table;

pub use rescue::LostAttempts;
pub use store::MemoryStore;
pub use table::Table;
