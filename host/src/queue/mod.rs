//! The durable truth about jobs: what a job is, which moves it can make, and where it is kept.
//!
//! Start with [`Store`], the seam every backend implements, and [`NewJob`], what it is fed.
//! This room knows nothing of WebAssembly, of settings files or of the command line.

mod exchange;
mod job;
mod lost;
pub mod memory;
mod open;
mod record;
mod retry;
pub mod sqlite;
mod standing;
mod state;
mod store;
mod summary;

pub use exchange::{
    Cancelled, ChangeCursor, Claim, Claimed, Claims, Enqueued, Failure, Filter, Moved, Progress, Pruned, Receipt,
    Recorded, Rescued, Retention, Retried, Selected, Selection, Stale, Want,
};
pub use job::{
    Digest, Due, Id, JobRef, JobType, Key, KeyError, Lease, NewJob, ParseIdError, Payload, PayloadError, Priority,
    Timestamp, TypeError, WorkerName,
};
pub use open::open;
pub use record::{AttemptRecord, Counts, Daemon, Job, LogLine, LogSource, PluginReport};
pub use retry::{Backoff, Next, Policies, Policy, snooze_delay};
pub use sqlite::{Durability, OpenError, OpenMode, Options, TableName};
pub use standing::{StandingAnswer, StandingClaim};
pub use state::{Event, Outcome, Status};
pub use store::{Store, StoreError};
pub use summary::summary;
