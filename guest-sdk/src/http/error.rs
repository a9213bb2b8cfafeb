//! Why there is no answer, or not the one that was hoped for.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::error::Error as Answer;

/// A request that failed. `?` makes of it what is right for the job, as the [module](super) says.
///
/// It names the method and the origin of the request, never its path or query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// As in `POST https://example.com`.
    request: String,
    kind: ErrorKind,
}

/// What made a request fail. A text is the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It was never sent: the method, the URL, a header or the body is none.
    Invalid(String),
    /// The settings do not allow the request; this is the type of the job that lacks the grant.
    Denied {
        /// A `[jobs.NAME]` of jobq.toml.
        job_type: String,
        /// What that would have to list.
        origin: String,
    },
    /// The host has only addresses of private networks, which have to be granted as they are.
    Private,
    /// The host has no address, or nobody could tell.
    Dns(String),
    /// There is no connection to it.
    Connect(String),
    /// There is no safe connection to it.
    Tls(String),
    /// There was no whole answer within this time.
    Timeout(Duration),
    /// The answer broke off or is not HTTP.
    Broken(String),
    /// The body of the answer is longer than this many bytes.
    TooLong(usize),
    /// The status is not 2xx; only [`error_for_status`](super::Response::error_for_status) minds.
    Status {
        /// As in 503.
        status: u16,
        /// How long to wait, if the answer names a time to come.
        retry_after: Option<Duration>,
        /// What else the answer says, to go on after the status.
        detail: String,
    },
    /// The body is not the JSON that was asked for.
    Json(String),
}

impl Error {
    pub(crate) fn new(request: String, kind: ErrorKind) -> Error {
        Error { request, kind }
    }

    /// What made it fail.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The status of the answer, if that is what made it fail.
    pub fn status(&self) -> Option<u16> {
        match self.kind {
            ErrorKind::Status { status, .. } => Some(status),
            _ => None,
        }
    }
}

impl ErrorKind {
    /// What this means for the job, with a message that may say more.
    pub(crate) fn answer(&self, message: String) -> Answer {
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

    /// Whether its words go on after the request as a sentence.
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
                "leads into a private network; jobq.toml has to grant that by its address, as in http = [\"http://10.0.0.7:8080\"]",
            ),
            ErrorKind::Dns(why) => write!(f, "failed to find the host: {why}"),
            ErrorKind::Connect(why) => write!(f, "failed to connect: {why}"),
            ErrorKind::Tls(why) => write!(f, "failed to make a safe connection: {why}"),
            ErrorKind::Timeout(time) => write!(f, "no whole answer within {time:?}"),
            ErrorKind::Broken(why) => write!(f, "the answer is broken: {why}"),
            ErrorKind::TooLong(limit) => write!(f, "the answer is longer than {limit} bytes"),
            ErrorKind::Status { status, detail, .. } => write!(f, "answered {status}{detail}"),
            ErrorKind::Json(why) => write!(f, "did not answer the JSON that was expected{why}"),
        }
    }
}

impl StdError for Error {
    /// Its kind, so that it is found behind errors that show only their sources.
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
    fn the_question_mark_knows_what_helps() {
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
    fn a_request_that_is_not_granted_is_told_what_to_write() {
        let message = "GET https://example.com is not granted; \
                       jobq.toml grants it with http = [\"https://example.com\"] under [jobs.hook]";
        assert_eq!(Answer::from(denied()), Answer::Fatal(message.into()));
    }

    #[test]
    fn the_question_mark_knows_it_inside_of_other_errors() {
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
    fn who_says_it_in_words_is_heard() {
        assert_eq!(retry(denied()), Answer::Retry(denied().to_string()));
        let timeout = failed(ErrorKind::Timeout(Duration::from_millis(1_500)));
        assert_eq!(fatal(timeout), Answer::Fatal("GET https://example.com: no whole answer within 1.5s".into()));
    }
}
