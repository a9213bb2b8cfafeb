//! The durable truth about jobs: what a job is, which moves it can make, and where it is kept.
//!
//! Start with [`Store`], the seam every backend implements, and [`NewJob`], what it is fed.
//! This room knows nothing of WebAssembly, of settings files or of the command line.

mod job;
mod lost;
pub mod memory;
mod open;
mod parked_claim;
mod requests;
mod retry;
mod rows;
pub mod sqlite;
mod state;
mod store;
mod summary;

pub use job::{
    Digest, Due, Id, JobRef, JobType, Key, KeyError, Lease, NewJob, ParseIdError, Payload, PayloadError, Priority,
    Timestamp, TypeError, WorkerName,
};
pub use open::open;
pub use parked_claim::{ParkedAnswer, ParkedClaim};
pub use requests::{
    AttemptFailure, BulkResult, Cancelled, ChangeCursor, Claim, Claimed, Claims, Deleted, Enqueued, Filter, Progress, Pruned,
    Receipt, Recorded, Rescued, Resolved, Retention, Retried, Selected, Selection, StaleLease, Want,
};
pub use retry::{Backoff, Next, RetryPolicies, RetryPolicy, snooze_delay};
pub use rows::{AttemptRecord, Counts, Daemon, Job, LogLine, LogSource, PluginReport};
pub use sqlite::{Durability, OpenError, OpenMode, QueueOptions, TableName};
pub use state::{Event, Outcome, Status};
pub use store::{Store, StoreError};
pub use summary::summary;
