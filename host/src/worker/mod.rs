//! Claims jobs, runs them, records what became of them. The one room where queue and sandbox meet.
//!
//! Start with [`Pool`]. Where each duty lives:
//! - `pool`: start, wake, reconfigure, stop; `dispatcher`: the loop that owns the truth about slots.
//! - `ahead`: how many short jobs may be claimed before a slot is free for them.
//! - `run`: one attempt from its lease to its record; `attempt` decides, purely, which record that is.
//! - `lanes`: long computations move to threads of their own, out of the way of short jobs.
//! - `handlers`: what an attempt runs: a plugin in the sandbox, or (`native`) a function of the application.
//! - `keeper`: keeps the leases of running attempts alive, hears their logs, stops what was cancelled.
//! - `rescuer`, `cleaner`, `herald`: the chores: lost leases, retention, what the daemon tells of itself.

mod ahead;
mod attempt;
mod cleaner;
mod clock;
mod dispatcher;
mod follow_up;
mod handlers;
mod herald;
mod keeper;
mod lanes;
mod live;
mod native;
mod options;
mod pool;
mod rescuer;
mod run;

pub use attempt::{Verdict, decide};
pub use handlers::{Handler, Handlers, PluginHandlers};
pub use native::{JobError, NativeHandlers, NativeJob};
pub use options::{Options, Rule, Rules, Serve, auto_concurrency};
pub use pool::{Pool, Setup, Waker};
