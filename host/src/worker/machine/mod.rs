//! What the worker decides, as pure state machines: an event and an instant go in, actions come out.
//!
//! Nothing in here reads a clock, waits, or calls the store; `tests/tidy` enforces that. The loops beside this module carry
//! the actions out, and `simulation` runs the machines against a store in memory with a fake clock.

pub(super) mod clock_jump;
pub(super) mod dispatch;
pub(super) mod heartbeat;
pub(super) mod leases;
pub(super) mod prefetch;
pub(super) mod retention;
pub(super) mod shutdown;
