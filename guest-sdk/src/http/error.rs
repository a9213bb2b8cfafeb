//! Errors of HTTP requests, and what they mean for the job.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::error::Error as Answer;

/// A failed request. The [module](super) describes how `?` converts it.
///
/// It contains the method and the origin of the request, never its path or query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Method and origin, such as `POST https://example.com`.
    request: String,
    kind: ErrorKind,
}

/// Why a request failed. The strings continue the message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request wasn't sent: its method, URL, a header or the body is invalid.
    Invalid(String),
    /// jobq.toml doesn't grant the request.
    Denied {
        /// The job type that lacks the grant: a `[jobs.NAME]` of jobq.toml.
        job_type: String,
        /// The origin that its `http` must list.
        origin: String,
    },
    /// The host has only private addresses, which must be granted by address.
    Private,
    /// The host name couldn't be resolved.
    Dns(String),
    /// The connection failed.
    Connect(String),
    /// The TLS handshake failed.
    Tls(String),
    /// The response wasn't complete within this time.
    Timeout(Duration),
    /// The response is incomplete or isn't valid HTTP.
    Broken(String),
    /// The body of the response is longer than this many bytes.
    TooLong(usize),
    /// The status isn't 2xx. Only [`error_for_status`](super::Response::error_for_status) returns this.
    Status {
        /// The status, such as 503.
        status: u16,
        /// How long to wait, if the response has a valid `Retry-After`.
        retry_after: Option<Duration>,
        /// The redirect target and the start of the body, in the form of a continuation of the message.
        detail: String,
    },
    /// The body isn't the expected JSON.
    Json(String),
}

impl Error {
    pub(crate) fn new(request: String, kind: ErrorKind) -> Error {
        Error { request, kind }
    }

    /// Why it failed.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The status of the response, if it is the reason for the failure.
    pub fn status(&self) -> Option<u16> {
        match self.kind {
            ErrorKind::Status { status, .. } => Some(status),
            _ => None,
        }
    }
}

impl ErrorKind {
    /// What this error means for the job.
    pub(crate) fn to_answer(&self, message: String) -> Answer {
        match self {
            ErrorKind::Dns(_)
            | ErrorKind::Connect(_)
            | ErrorKind::Tls(_)
            | ErrorKind::Timeout(_)
            | ErrorKind::Broken(_)
            | ErrorKind::Json(_) => Answer::Retry(message),
            ErrorKind::Status { status: 408 | 425 | 429 | 500..=599, retry_after, .. } => match retry_after {
                Some(delay) => Answer::RetryAfter(message, *delay),
                None => Answer::Retry(message),
            },
            ErrorKind::Invalid(_)
            | ErrorKind::Denied { .. }
            | ErrorKind::Private
            | ErrorKind::TooLong(_)
            | ErrorKind::Status { .. } => Answer::Fatal(message),
        }
    }

    /// Whether the message continues the name of the request without a colon.
    fn is_predicate(&self) -> bool {
        use ErrorKind::{Denied, Json, Private, Status};
        matches!(self, Denied { .. } | Private | Status { .. } | Json(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { request, kind } = self;
        let colon = if kind.is_predicate() { "" } else { ":" };
        write!(f, "{request}{colon} {kind}")
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Invalid(why) => f.write_str(why),
            ErrorKind::Denied { job_type, origin } => {
                write!(f, "is not granted; jobq.toml grants it with http = [\"{origin}\"] under [jobs.{job_type}]")
            }
            ErrorKind::Private => f.write_str(
                "has a private address, which jobq.toml must grant by address, such as http = [\"http://10.0.0.7:8080\"]",
            ),
            ErrorKind::Dns(why) => write!(f, "failed to resolve the host: {why}"),
            ErrorKind::Connect(why) => write!(f, "failed to connect: {why}"),
            ErrorKind::Tls(why) => write!(f, "TLS failed: {why}"),
            ErrorKind::Timeout(time) => write!(f, "no complete response within {time:?}"),
            ErrorKind::Broken(why) => write!(f, "invalid response: {why}"),
            ErrorKind::TooLong(limit) => write!(f, "the response is longer than {limit} bytes"),
            ErrorKind::Status { status, detail, .. } => write!(f, "answered {status}{detail}"),
            ErrorKind::Json(why) => write!(f, "didn't return the expected JSON{why}"),
        }
    }
}

impl StdError for Error {
    /// The kind, so that it is found in chains of errors that expose only their sources.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.kind)
    }
}

impl StdError for ErrorKind {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;
    use crate::{fatal, retry};

    fn failed(kind: ErrorKind) -> Error {
        Error::new("GET https://example.com".into(), kind)
    }

    fn denied() -> Error {
        failed(ErrorKind::Denied { job_type: "hook".into(), origin: "https://example.com".into() })
    }

    #[test]
    fn the_question_mark_decides_between_retry_and_fatal() {
        for kind in [
            ErrorKind::Dns("no".into()),
            ErrorKind::Connect("no".into()),
            ErrorKind::Tls("no".into()),
            ErrorKind::Timeout(Duration::from_secs(1)),
            ErrorKind::Broken("no".into()),
            ErrorKind::Json(": no".into()),
        ] {
            let message = failed(kind.clone()).to_string();
            assert_eq!(Answer::from(failed(kind)), Answer::Retry(message));
        }
        for kind in [ErrorKind::Invalid("no".into()), ErrorKind::Private, ErrorKind::TooLong(1)] {
            let message = failed(kind.clone()).to_string();
            assert_eq!(Answer::from(failed(kind)), Answer::Fatal(message));
        }
    }

    #[test]
    fn a_denied_request_names_the_missing_grant() {
        let message = "GET https://example.com is not granted; \
                       jobq.toml grants it with http = [\"https://example.com\"] under [jobs.hook]";
        assert_eq!(Answer::from(denied()), Answer::Fatal(message.into()));
    }

    #[test]
    fn the_question_mark_finds_it_inside_other_errors() {
        fn boxed() -> Result<()> {
            Err(Box::<dyn StdError>::from(denied()))?
        }
        fn anyhow() -> Result<()> {
            Err(anyhow::Error::from(denied()).context("the hook was not called"))?
        }
        fn bare_anyhow() -> Result<()> {
            Err(anyhow::Error::from(denied()))?
        }
        assert_eq!(boxed(), Err(Answer::Fatal(denied().to_string())));
        assert_eq!(anyhow(), Err(Answer::Fatal(format!("the hook was not called: {}", denied()))));
        assert_eq!(bare_anyhow(), Err(Answer::Fatal(denied().to_string())));
    }

    #[test]
    fn an_explicit_retry_or_fatal_takes_precedence() {
        assert_eq!(retry(denied()), Answer::Retry(denied().to_string()));
        let timeout = failed(ErrorKind::Timeout(Duration::from_millis(1_500)));
        assert_eq!(fatal(timeout), Answer::Fatal("GET https://example.com: no complete response within 1.5s".into()));
    }
}
