//! Claims jobs, runs their handlers and records the outcomes. The only module that uses both the queue and the sandbox.
//!
//! Start with [`Pool`]. What each file holds:
//! - `pool`: starting, waking, reconfiguring and stopping a pool; `pool_state`: what its tasks share.
//! - `dispatcher`: the loop that claims jobs and starts attempts.
//! - `machine`: the decisions of all loops as pure state machines; `simulation` tests them with a fake clock.
//! - `run`: one attempt from its lease to its outcome; `attempt`: what an outcome means for the job.
//! - `record`: the writes that end an attempt, retried until they succeed; `outbox`: the jobs that a handler enqueues.
//! - `handlers`: what an attempt runs: a plugin in the sandbox, or (`native`) a function of the application.
//! - `cpu_runtime`: separate threads for long computations, so that short jobs don't wait for them.
//! - `heartbeat`: renews leases, stores logs and progress, stops cancelled guests.
//! - `reaper`, `cleaner`, `daemon_status`: lost jobs, retention, and the daemon's row in the database.

mod attempt;
mod cleaner;
mod cpu_runtime;
mod daemon_status;
mod dispatcher;
mod handlers;
mod heartbeat;
mod machine;
mod native;
mod options;
mod outbox;
mod pool;
mod pool_state;
mod reaper;
mod record;
mod run;
#[cfg(test)]
mod simulation;

pub use attempt::{Verdict, decide};
pub use handlers::{Handler, Handlers, PluginHandlers};
pub use native::{JobError, NativeHandlers, NativeJob};
pub use options::{JobTypeOptions, JobTypes, ServedTypes, WorkerOptions, auto_concurrency};
pub use pool::{Pool, Setup, Waker};
