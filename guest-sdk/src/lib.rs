//! Write handlers for **jobq**, a daemon that runs background jobs as WebAssembly components.
//!
//! A complete handler:
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
//! # Arguments
//!
//! The first argument is the payload, of any type that serde can deserialize ([`FromJson`]).
//! A payload that can't be parsed makes the job dead at once, with the path and serde's message:
//! ``bad payload at `items[2].price`: invalid type: string "x", expected f64 at line 1 column 52``.
//! The second argument is the [`Context`]: the job and its attempt, [progress](Context::progress), the
//! [remaining time](Context::remaining), [cancellation](Context::is_cancelled), [granted directories](Context::dir) and
//! [follow-up jobs](Context::enqueue). The module [`http`] sends requests.
//!
//! # Return values
//!
//! | return value | effect on the job |
//! |---|---|
//! | `Ok(value)` | completed; the result is the JSON of `value`, empty for `()` and `None` ([`ToJson`]) |
//! | `something?` | failed; runs again after the backoff of its type. The message is the error and its sources. An [HTTP error](http) may decide otherwise |
//! | `Err(`[`retry`]`("…"))` | the same, with your message |
//! | `Err(`[`retry_after`]`("…", delay))` | the same, after your delay |
//! | `Err(`[`fatal`]`("…"))` | dead at once |
//! | `Err(`[`snooze`]`(delay))` | pending; runs again after the delay, and the attempt isn't counted |
//! | a panic | failed, with the panic message and the stack frames |
//!
//! A job can run twice if its daemon is killed. [`Context::job_id`] is the same in every attempt; use it as an idempotency key.
//!
//! `jobq logs ID` shows what the handler writes with the macros of [`log`](mod@log), and to stdout and stderr.
//!
//! # Tests
//!
//! A handler is a function, so `cargo test` can run it natively, with a [fake attempt](testing::Fake):
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

/// The version of the contract, `jobq:handler`, that this crate implements. Its text is in `wit/`.
pub const CONTRACT: &str = "0.1.0";

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Items that the expansion of [`handler!`] uses. Not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::handler::check;
    #[cfg(target_arch = "wasm32")]
    pub use crate::wasm::{Guest, Job, JobError, bindings, export_handler, handle};
}
