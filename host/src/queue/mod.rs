//! The durable truth about jobs: what a job is, which moves it can make, and where it is kept.
//!
//! Start with [`Store`], the seam every backend implements, and [`NewJob`], what it is fed.
//! This room knows nothing of WebAssembly, of settings files or of the command line.

mod job;
mod retry;
pub mod sqlite;
mod state;
mod store;
mod summary;

pub use job::{
    Digest, Due, Id, JobType, Lease, NewJob, ParseIdError, Payload, PayloadError, Priority, Timestamp, TypeError,
};
pub use retry::{Backoff, Next, Policies, Policy};
pub use state::{Event, Outcome, Status};
pub use store::{
    AttemptRecord, Cancelled, Claim, Claimed, Claims, Counts, Daemon, Enqueued, Failure, Filter, Job, LogLine,
    LogSource, Moved, PluginReport, Progress, Pruned, Receipt, Recorded, Rescued, Retention, Retried, Selected,
    Selection, Stale, Store, StoreError, Want,
};
pub use summary::summary;
