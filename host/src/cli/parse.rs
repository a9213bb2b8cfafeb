//! Words of the command line as values, with errors that say what was expected.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::exit::Failure;
use crate::queue::{Priority, Status, Timestamp};

/// One of these states; completions and errors name them. Goes with `ignore_case`.
pub(super) fn status(states: &'static [Status]) -> impl TypedValueParser<Value = Status> {
    let words = states.iter().map(|status| status.as_str());
    PossibleValuesParser::new(words).try_map(|word| {
        Status::parse(&word.to_lowercase()).ok_or_else(|| Failure::usage(format!("`{word}` is not a state")))
    })
}

/// A priority.
pub(super) fn priority(text: &str) -> Result<Priority, Failure> {
    let expected = || Failure::usage(format!("expected a whole number from {} to {}", Priority::MIN, Priority::MAX));
    text.parse().map_err(|_| expected())
}

/// A number of things.
pub(super) fn count(text: &str) -> Result<usize, Failure> {
    text.parse().map_err(|_| Failure::usage("expected a whole number"))
}

/// A number of things of which there must be one.
pub(super) fn positive<T: FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::usage("expected a whole number, 1 or more"))
}

/// A duration.
pub(super) fn duration(text: &str) -> Result<Duration, Failure> {
    humantime::parse_duration(text)
        .map_err(|_| Failure::usage(format!("`{text}` is not a duration: expected one such as 10s, 5m, 2h 30m or 7d")))
}

/// An instant: RFC 3339, or a date and time of this machine's zone.
pub(super) fn instant(text: &str) -> Result<Timestamp, Failure> {
    let civil =
        || text.parse::<jiff::civil::DateTime>().and_then(|at| at.to_zoned_datetime(jiff::tz::TimeZone::system()));
    let instant = text.parse::<jiff::Timestamp>().or_else(|_| civil().map(|zoned| zoned.timestamp()));
    match instant.map(|instant| Timestamp::from_millis(instant.as_millisecond())) {
        Ok(instant) if instant >= Timestamp::EARLIEST_DUE => Ok(instant),
        Ok(_) => Err(Failure::usage(format!("`{text}` is too long ago: expected an instant after 2001-09-09"))),
        Err(_) => Err(Failure::usage(format!(
            "`{text}` is not an instant: expected RFC 3339 such as 2026-12-01T03:00:00Z, or a local time such as \"2026-12-01 03:00\""
        ))),
    }
}
