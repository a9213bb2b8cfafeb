//! Claims jobs, runs them, records what became of them. The one room where queue and sandbox meet.
//!
//! Start with [`Pool`]. Where each duty lives:
//! - `pool`: start, wake, reconfigure, stop; `dispatcher`: the loop that claims and starts.
//! - `machine`: what those and the loops below decide, as pure state machines; `simulation` tests them with a fake clock.
//! - `run`: one attempt from its lease to its record; `attempt` decides, purely, which record that is.
//! - `lanes`: long computations move to threads of their own, out of the way of short jobs.
//! - `handlers`: what an attempt runs: a plugin in the sandbox, or (`native`) a function of the application.
//! - `heartbeat`: keeps the leases of running attempts alive, hears their logs, stops what was cancelled.
//! - `events`: the log about jobs.
//! - `reaper`, `cleaner`, `presence`: the chores: lost leases, retention, what the daemon tells of itself.

mod attempt;
mod cleaner;
mod dispatcher;
mod events;
mod follow_up;
mod handlers;
mod heartbeat;
mod lanes;
mod machine;
mod native;
mod options;
mod pool;
mod presence;
mod reaper;
mod release;
mod run;
#[cfg(test)]
mod simulation;

pub use attempt::{Verdict, decide};
pub use handlers::{Handler, Handlers, PluginHandlers};
pub use native::{JobError, NativeHandlers, NativeJob};
pub use options::{Rule, Rules, Serve, WorkerOptions, auto_concurrency};
pub use pool::{Pool, Setup, Waker};
