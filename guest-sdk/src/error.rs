//! Every answer but a result.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::http::ErrorKind;

/// What a handler returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Every answer but a result. `?` makes one of any error, a [retry](Error::Retry) with the error and its sources as the message,
/// or what an [HTTP error](crate::http) knows to be right; for the others there are [`fatal`], [`retry_after`] and [`snooze`].
///
/// ```
/// # use jobq_guest::{Result, fatal, snooze};
/// # use std::time::Duration;
/// fn read(path: &str) -> Result<u32> {
///     let text = std::fs::read_to_string(path)?; // worth another attempt
///     if text.is_empty() {
///         return Err(snooze(Duration::from_secs(60))); // not there yet
///     }
///     text.trim().parse().map_err(fatal) // will be the same next time
/// }
///
/// assert_eq!(read("/no/such/file").unwrap_err().to_string(), "No such file or directory (os error 2)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Failed: try again after the backoff of the job type, as long as there are attempts left.
    Retry(String),
    /// Failed: try again after this delay, as long as there are attempts left. The host takes at most 366 days.
    RetryAfter(String, Duration),
    /// Failed for good: the job is dead at once.
    Fatal(String),
    /// Not failed, not yet: run again after this delay, 100 ms to 366 days. Not counted as an attempt.
    Snooze(Duration),
}

/// Failed: try again after the backoff of the job type. `?` does this to any error by itself.
pub fn retry(error: impl Into<Box<dyn StdError>>) -> Error {
    Error::Retry(message(&*error.into()))
}

/// Failed: try again after this delay.
pub fn retry_after(error: impl Into<Box<dyn StdError>>, delay: Duration) -> Error {
    Error::RetryAfter(message(&*error.into()), delay)
}

/// Failed for good: the job is dead at once. For what will be the same next time.
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

/// Not failed, not yet: run again after this delay. Not counted as an attempt.
pub fn snooze(delay: Duration) -> Error {
    Error::Snooze(delay)
}

/// Any error, and any text, is a [retry](Error::Retry), unless an [HTTP error](crate::http::Error) is behind it, which knows better.
impl<E: Into<Box<dyn StdError>>> From<E> for Error {
    fn from(error: E) -> Error {
        let error = error.into();
        match chain(&*error).find_map(|error| error.downcast_ref::<ErrorKind>()) {
            Some(http) => http.answer(message(&*error)),
            None => Error::Retry(message(&*error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Retry(message) | Error::RetryAfter(message, _) | Error::Fatal(message) => f.write_str(message),
            Error::Snooze(delay) => write!(f, "not yet, run again in {delay:?}"),
        }
    }
}

/// An error and what caused it, in one line; what an error says of its source itself is not said again.
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

/// An error and what caused it.
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
    fn a_source_that_was_named_already_is_not_named_twice() {
        let error = Layer("failed to read: disk full", Some(Box::new(Layer("disk full", None))));
        assert_eq!(Error::from(error), Error::Retry("failed to read: disk full".into()));
    }

    #[test]
    fn the_question_mark_takes_texts_boxes_and_anyhow() {
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
    fn an_answer_passes_through_the_question_mark_as_it_is() {
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
