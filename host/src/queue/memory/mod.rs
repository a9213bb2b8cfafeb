//! A queue in memory, for tests of applications and of the worker: the same verbs and answers, gone with the process.
//!
//! [`Table`] is the queue as a value: no clock, no chance, no I/O, so that a simulation can drive it. [`MemoryStore`] puts it behind
//! the [`Store`](crate::queue::Store) that everybody else uses.

mod cancel;
mod claim;
mod daemons;
mod delete;
mod end;
mod enqueue;
mod history;
mod indexes;
mod lease;
mod prune;
mod read;
mod rescue;
mod retry;
mod store;
mod table;

pub use rescue::Gone;
pub use store::MemoryStore;
pub use table::Table;
