//! The queue: what a job is, its state machine, and the backends that store it.
//!
//! Start with [`Store`], the interface of every backend, and [`NewJob`], what is enqueued.
//! This module knows nothing about WebAssembly, settings files or the command line.

mod job;
pub mod memory;
mod open;
mod parked_claim;
mod requests;
mod retry;
mod rows;
pub mod sqlite;
mod state;
mod store;
mod store_error;

pub use job::{
    Digest, Due, Id, JobRef, JobType, Key, KeyError, Lease, NewJob, ParseIdError, Payload, PayloadError, Priority,
    Timestamp, TypeError, WorkerName,
};
pub use open::open;
pub use parked_claim::{ParkedAnswer, ParkedClaim};
pub use requests::{
    AttemptFailure, AttemptWrite, BulkResult, Cancelled, ChangeCursor, Claim, Claimed, Claims, Enqueued, Filter,
    Progress, Pruned, Receipt, Rescued, Resolved, Retention, Retried, Selected, Selection, StaleLease, Want,
};
pub use retry::{Backoff, Next, RetryPolicies, RetryPolicy, snooze_delay};
pub use rows::{AttemptRecord, Counts, Daemon, Job, LogLine, LogSource, PluginReport, summary};
pub use sqlite::{Durability, OpenError, OpenMode, QueueOptions, TableName};
pub use state::{Event, Outcome, Status};
pub use store::Store;
pub use store_error::StoreError;
