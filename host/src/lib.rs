//! jobq: a background-job daemon whose queue is a table in SQLite and whose handlers are WebAssembly components.
//!
//! The rooms of the crate, in the order a job passes them:
//!
//! - [`queue`]: the durable truth about jobs. Knows no WebAssembly.
//! - [`worker`]: claims jobs, runs them, records what became of them. The one place where queue and sandbox meet.
//! - [`plugins`]: which component serves which job type, loaded from a directory and swapped while it runs.
//! - [`sandbox`]: runs one guest safely. Knows no queue.
//! - [`config`]: `jobq.toml`, checked into the options of the others.
//! - [`cli`]: the commands.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod config;
#[cfg(feature = "daemon")]
pub mod plugins;
pub mod queue;
#[cfg(feature = "daemon")]
pub mod sandbox;
#[cfg(feature = "daemon")]
pub mod worker;
