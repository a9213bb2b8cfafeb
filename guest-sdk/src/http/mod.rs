//! Outgoing HTTP: one request, its answer, and what a failure means for the job.
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
//! The settings have to allow it: `http = ["https://api.example.com"]` under the handler's own type in jobq.toml.
//!
//! # What a failure means
//!
//! `?` on an [`Error`] of this module does what is right for the job, also when it is a source of another error:
//!
//! | what happened | the job |
//! |---|---|
//! | no connection, no such host, TLS failed, no answer in time, the answer broke off or is no JSON | another attempt after the backoff of its type |
//! | [`error_for_status`](Response::error_for_status): 408, 425, 429, 5xx | another attempt, after `Retry-After` if the answer names a time |
//! | any other status that is not 2xx | is dead at once |
//! | jobq.toml does not allow the request, or its address is a private one | is dead at once |
//! | the URL or a header is malformed, the answer is longer than the limit | is dead at once |
//!
//! `.map_err(retry)?` and `.map_err(fatal)?` decide otherwise, and [`Error::kind`] tells what it was.
//!
//! # What it does by itself
//!
//! - A request without [`timeout`](Request::timeout) has 30 seconds, and every request ends a moment before the attempt does,
//!   so that the handler can still say what became of it.
//! - An answer is read whole, up to 8 MiB or what [`max_body`](Request::max_body) says; an answer of status 400 or more is cut there.
//! - Redirects are not followed, because another origin would have to be granted anyway: they are a status that is not 2xx.
//! - Errors name the method and the origin of a request, never its path or query, which may hold a secret.

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
