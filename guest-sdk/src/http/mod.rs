//! Outgoing HTTP requests, and what their failures mean for the job.
//!
//! ```
//! use jobq_guest::{Context, Result, http};
//! # use jobq_guest::testing::Fake;
//! # use serde::Deserialize;
//!
//! # #[derive(Deserialize)]
//! # struct Charge { amount: u32 }
//! # #[derive(Deserialize)]
//! # struct Charged { id: String }
//! fn charge(job: Charge, ctx: &Context) -> Result<String> {
//!     let charged: Charged = http::post("https://api.example.com/charges")
//!         .header("Idempotency-Key", ctx.job_id())
//!         .json(&serde_json::json!({"amount": job.amount}))
//!         .send(ctx)?
//!         .error_for_status()?
//!         .json()?;
//!     Ok(charged.id)
//! }
//!
//! let fake = Fake::new().http(http::Response::new(201).with_body(r#"{"id": "ch_1"}"#));
//! assert_eq!(fake.run(charge, r#"{"amount": 950}"#), Ok(r#""ch_1""#.into()));
//! assert_eq!(fake.requests()[0].header("idempotency-key"), Some("01934f6e-7a00-7000-8000-000000000001"));
//! ```
//!
//! jobq.toml must allow the request: `http = ["https://api.example.com"]` under the handler's own type.
//!
//! # Failures
//!
//! `?` converts an [`Error`] of this module as follows, even if it is the source of another error:
//!
//! | failure | effect on the job |
//! |---|---|
//! | DNS, connection or TLS failure, timeout, incomplete response, a response that isn't the expected JSON | runs again after the backoff of its type |
//! | [`error_for_status`](Response::error_for_status) with 408, 425, 429 or 5xx | runs again, after `Retry-After` if the response has it |
//! | `error_for_status` with any other status that isn't 2xx | dead at once |
//! | the request isn't granted, or the host has a private address | dead at once |
//! | the URL or a header is malformed, or the response is longer than the limit | dead at once |
//!
//! Use `.map_err(retry)?` or `.map_err(fatal)?` to decide otherwise. [`Error::kind`] returns the cause.
//!
//! # Defaults
//!
//! - The [`timeout`](Request::timeout) of a request is 30 seconds. Every request ends shortly before the attempt does, so that
//!   the handler can still handle the failure.
//! - The whole response is read, up to 8 MiB or [`max_body`](Request::max_body). The body of an error response (status 400 or
//!   higher) is cut at that limit.
//! - Redirects aren't followed, because another origin would need its own grant.
//! - Errors contain the method and the origin of a request, never its path or query, which may contain secrets.

mod error;
mod request;
mod response;
mod retry_after;
mod url;

pub use error::{Error, ErrorKind};
pub use request::{Request, delete, get, patch, post, put, request};
pub use response::Response;
pub use url::{Url, UrlError};

pub(crate) use request::Outgoing;
