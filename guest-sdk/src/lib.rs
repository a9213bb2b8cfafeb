//! A handler for the background jobs of **jobq**, in a few lines.
//!
//! This is a whole one:
//!
//! ```
//! use jobq_guest::{Context, Result, fatal, log};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Greet {
//!     name: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Greeted {
//!     greeting: String,
//! }
//!
//! fn hello(job: Greet, ctx: &Context) -> Result<Greeted> {
//!     if job.name.is_empty() {
//!         return Err(fatal("`name` is empty"));
//!     }
//!     log::info!("attempt {} of {}", ctx.attempt(), ctx.max_attempts());
//!     Ok(Greeted { greeting: format!("hello {}", job.name) })
//! }
//!
//! jobq_guest::handler!(hello);
//! # fn main() {}
//! ```
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! jobq-guest = "0.1"
//! serde = { version = "1", features = ["derive"] }
//! ```
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2
//! cp target/wasm32-wasip2/release/hello.wasm …/plugins/
//! jobq enqueue hello '{"name": "Ana"}' --wait=30s
//! ```
//!
//! # What goes in
//!
//! The first argument is the payload, any type that serde can read ([`FromJson`]).
//! One that does not parse makes the job dead at once, with the place and serde's words:
//! ``bad payload at `items[2].price`: invalid type: string "x", expected f64 at line 1 column 52``.
//! The second is the [`Context`]: what is known about the job and its attempt, [progress](Context::progress),
//! [the time that is left](Context::remaining), [cancellation](Context::is_cancelled), [granted directories](Context::dir),
//! and [follow-up jobs](Context::enqueue). Requests are sent by [`http`].
//!
//! # What comes out
//!
//! | you write | the job |
//! |---|---|
//! | `Ok(value)` | is completed; its result is the JSON of `value`, and nothing for `()` and `None` ([`ToJson`]) |
//! | `something?` | failed: another attempt after the backoff of its type, with the error and its sources as the message; an [HTTP error](http) knows better |
//! | `Err(`[`retry`]`("…"))` | the same in your own words |
//! | `Err(`[`retry_after`]`("…", delay))` | the same after your own delay |
//! | `Err(`[`fatal`]`("…"))` | is dead at once: no attempt could help |
//! | `Err(`[`snooze`]`(delay))` | is not failed: it runs again after the delay, and the attempt does not count |
//! | a panic | failed, with the message of the panic and the frames |
//!
//! A job may run twice, when the daemon was killed at the wrong moment: [`Context::job_id`] is the same in every attempt.
//!
//! The macros of [`log`](mod@log) write lines that are kept with the attempt (`jobq logs ID`), stdout and stderr do so too.
//!
//! # Tests
//!
//! A handler is a plain function, and `cargo test` runs it without WebAssembly on a [fake attempt](testing::Fake):
//!
//! ```
//! # use jobq_guest::{Context, Result};
//! # fn hello(job: serde_json::Value, _: &Context) -> Result<serde_json::Value> {
//! #     Ok(serde_json::json!({"greeting": format!("hello {}", job["name"].as_str().unwrap())}))
//! # }
//! use jobq_guest::testing::Fake;
//!
//! let answer = Fake::new().run(hello, r#"{"name": "Ana"}"#);
//! assert_eq!(answer, Ok(r#"{"greeting":"hello Ana"}"#.into()));
//! ```

#![deny(missing_docs)]

mod context;
mod dir;
mod error;
mod follow_up;
mod handler;
mod host;
pub mod http;
mod json;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use context::Context;
pub use dir::Dir;
pub use error::{Error, Result, fatal, retry, retry_after, snooze};
pub use follow_up::{EnqueueError, FollowUp};
pub use json::{FromJson, RawJson, ToJson};
pub use log;

/// The version of the contract, `jobq:handler`, that handlers of this crate are made for; `wit/` holds its text.
pub const CONTRACT: &str = "0.1.0";

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What [`handler!`] needs at its place of use. Not a part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::handler::check;
    #[cfg(target_arch = "wasm32")]
    pub use crate::wasm::{Guest, Job, JobError, bindings, export_handler, handle};
}
