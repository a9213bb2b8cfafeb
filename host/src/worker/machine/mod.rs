//! The worker's decisions as pure state machines: an event and an instant go in, actions come out.
//!
//! Nothing here reads a clock, waits, or calls the store; `tests/tidy` enforces that. The loops in the parent module perform
//! the actions, and `simulation` runs the machines against a store in memory with a fake clock.

pub(super) mod clock_jump;
pub(super) mod dispatch;
pub(super) mod drain;
pub(super) mod heartbeat;
pub(super) mod leases;
pub(super) mod log_limit;
pub(super) mod prefetch;
pub(super) mod retention;
pub(super) mod shutdown;
