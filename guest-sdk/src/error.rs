//! The answers of a handler other than a result.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::http::ErrorKind;

/// What a handler returns.
pub type Result<T> = std::result::Result<T, Error>;

/// The answers of a handler other than a result.
///
/// `?` converts any error to a [retry](Error::Retry) whose message is the error and its sources. An
/// [HTTP error](crate::http) may convert to another variant. Create the other variants with [`fatal`], [`retry_after`] and
/// [`snooze`].
///
/// ```
/// # use jobq_guest::{Result, fatal, snooze};
/// # use std::time::Duration;
/// fn read(path: &str) -> Result<u32> {
///     let text = std::fs::read_to_string(path)?; // a retry
///     if text.is_empty() {
///         return Err(snooze(Duration::from_secs(60))); // not written yet
///     }
///     text.trim().parse().map_err(fatal) // a retry wouldn't help
/// }
///
/// assert_eq!(read("/no/such/file").unwrap_err().to_string(), "No such file or directory (os error 2)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The attempt fails. The job runs again after the backoff of its type, or is dead if no attempts are left.
    Retry(String),
    /// The attempt fails. The job runs again after this delay (at most 366 days), or is dead if no attempts are left.
    RetryAfter(String, Duration),
    /// The job is dead at once.
    Fatal(String),
    /// Not a failure. The job runs again after this delay (100 ms to 366 days), and the attempt isn't counted.
    Snooze(Duration),
}

/// The attempt fails, and the job runs again after the backoff of its type. `?` does the same with any error.
pub fn retry(error: impl Into<Box<dyn StdError>>) -> Error {
    Error::Retry(message(&*error.into()))
}

/// The attempt fails, and the job runs again after this delay.
pub fn retry_after(error: impl Into<Box<dyn StdError>>, delay: Duration) -> Error {
    Error::RetryAfter(message(&*error.into()), delay)
}

/// The job is dead at once. Use it if another attempt would fail the same way.
///
/// ```
/// # use jobq_guest::{Error, fatal};
/// assert_eq!(fatal("no customer 17"), Error::Fatal("no customer 17".into()));
/// let number = "17b".parse::<u32>().map_err(fatal);
/// assert_eq!(number, Err(Error::Fatal("invalid digit found in string".into())));
/// ```
pub fn fatal(error: impl Into<Box<dyn StdError>>) -> Error {
    Error::Fatal(message(&*error.into()))
}

/// Not a failure: the job runs again after this delay, and the attempt isn't counted.
pub fn snooze(delay: Duration) -> Error {
    Error::Snooze(delay)
}

/// Any error or string becomes a [retry](Error::Retry). If its chain contains an [HTTP error](crate::http::Error), that error
/// decides.
impl<E: Into<Box<dyn StdError>>> From<E> for Error {
    fn from(error: E) -> Error {
        let error = error.into();
        match chain(&*error).find_map(|error| error.downcast_ref::<ErrorKind>()) {
            Some(http) => http.to_answer(message(&*error)),
            None => Error::Retry(message(&*error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Retry(message) | Error::RetryAfter(message, _) | Error::Fatal(message) => f.write_str(message),
            Error::Snooze(delay) => write!(f, "snoozed for {delay:?}"),
        }
    }
}

/// An error and its sources, in one line. A source that the message already ends with isn't repeated.
fn message(error: &(dyn StdError + 'static)) -> String {
    let mut message = error.to_string();
    for cause in chain(error).skip(1).map(ToString::to_string) {
        if !message.ends_with(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

/// An error and its sources.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for Layer {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_deref().map(|source| source as _)
        }
    }

    #[test]
    fn any_error_is_a_retry_that_names_its_sources() {
        let error = Layer("no greeting", Some(Box::new(Layer("no voice", Some(Box::new(Layer("a cold", None)))))));
        assert_eq!(Error::from(error), Error::Retry("no greeting: no voice: a cold".into()));
    }

    #[test]
    fn a_source_is_not_repeated() {
        let error = Layer("failed to read: disk full", Some(Box::new(Layer("disk full", None))));
        assert_eq!(Error::from(error), Error::Retry("failed to read: disk full".into()));
    }

    #[test]
    fn the_question_mark_converts_strings_boxes_and_anyhow() {
        fn text() -> Result<()> {
            None.ok_or("nothing there")?
        }
        fn owned() -> Result<()> {
            Err(format!("nothing in {}", "box"))?
        }
        fn boxed() -> Result<()> {
            Err(Box::<dyn StdError>::from("boxed"))?
        }
        fn anyhow() -> Result<()> {
            Err(anyhow::anyhow!("inner").context("outer"))?
        }
        assert_eq!(text(), Err(Error::Retry("nothing there".into())));
        assert_eq!(owned(), Err(Error::Retry("nothing in box".into())));
        assert_eq!(boxed(), Err(Error::Retry("boxed".into())));
        assert_eq!(anyhow(), Err(Error::Retry("outer: inner".into())));
    }

    #[test]
    fn the_question_mark_keeps_an_answer() {
        fn inner() -> Result<()> {
            Err(snooze(Duration::from_secs(1)))
        }
        fn outer() -> Result<()> {
            inner()?;
            Ok(())
        }
        assert_eq!(outer(), Err(Error::Snooze(Duration::from_secs(1))));
    }
}
