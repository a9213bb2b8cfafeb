//! Parses words of the command line, with errors that say what was expected.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, ZonedDateTime};

use super::exit::Failure;
use super::output::talk;
use crate::queue::{Priority, Status, Timestamp};

/// The farthest that a job may be due from now.
pub(super) const FARTHEST: Duration = Duration::from_secs(1000 * 366 * 86_400);

/// One of these states; completions and errors list them. Needs `ignore_case`.
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

/// A number of things, at least 1.
pub(super) fn positive<T: FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::usage("expected a whole number, 1 or more"))
}

/// A duration, days as 24 hours. Months and years are refused: `1M` for a minute would be a month.
pub(super) fn duration(text: &str) -> Result<Duration, Failure> {
    const EXAMPLES: &str = "expected one such as 10s, 5m, 2h 30m or 7d";
    let refused = |expected: &str| Failure::usage(format!("`{text}` is not a duration: {expected}"));
    let Ok(span) = text.parse::<Span>() else {
        let has_capital_m = text.ends_with('M');
        return Err(refused(if has_capital_m { "expected m for minutes, or days such as 30d" } else { EXAMPLES }));
    };
    if span.get_months() != 0 || span.get_years() != 0 {
        return Err(refused("months and years differ in length, expected days such as 30d"));
    }
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| refused(EXAMPLES))?;
    Duration::try_from(duration).map_err(|_| refused("it is negative"))
}

/// An instant: RFC 3339, a time in a zone such as `2026-12-01T03:00[America/New_York]`, or a date and time in this machine's zone.
pub(super) fn instant(text: &str) -> Result<Timestamp, Failure> {
    let refused = |reason: String| Failure::usage(format!("`{text}` is not an instant: {reason}"));
    let instant = if text.contains('[') {
        text.parse::<ZonedDateTime>().map(|zoned| zoned.timestamp()).map_err(|error| refused(error.to_string()))?
    } else if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        instant
    } else {
        let civil: DateTime = text.parse().map_err(|_| {
            refused(
                "expected RFC 3339 such as 2026-12-01T03:00:00Z, or a local time such as \"2026-12-01 03:00\""
                    .to_owned(),
            )
        })?;
        civil.to_zoned_datetime(local_zone(text)?).map_err(|error| refused(error.to_string()))?.timestamp()
    };
    let instant = Timestamp::from_millis(instant.as_millisecond());
    if instant < Timestamp::EARLIEST_DUE {
        return Err(Failure::usage(format!("`{text}` is too long ago: expected an instant after 2001-09-09")));
    }
    if instant > Timestamp::now().after(FARTHEST) {
        return Err(Failure::usage(format!("`{text}` is too far ahead: expected at most 1000 years")));
    }
    Ok(instant)
}

/// The time zone of this machine. A machine without one is at UTC, but a `TZ` that names an unknown zone must not be.
fn local_zone(text: &str) -> Result<TimeZone, Failure> {
    let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
    match (TimeZone::try_system(), named) {
        (Ok(zone), _) => Ok(zone),
        (Err(_), Some(name)) => Err(Failure::usage(format!("there is no time zone `{name}`, which TZ names"))
            .hint(format!("install tzdata, correct TZ, or give an offset: `{text}` is a local time"))),
        (Err(_), None) => {
            talk(format!("the time zone of this machine is not known: `{text}` is taken as UTC"));
            Ok(TimeZone::UTC)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        result.unwrap_err().in_one_line()
    }

    #[test]
    fn durations_have_units_of_fixed_length() {
        for (text, seconds) in
            [("10s", 10), ("5m", 300), ("2h 30m", 9_000), ("2h30m", 9_000), ("7d", 604_800), ("1w", 604_800)]
        {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        assert_eq!(duration("100ms").unwrap(), Duration::from_millis(100));
        assert_eq!(duration("0s").unwrap(), Duration::ZERO);
        for text in ["1M", "2h 1M"] {
            assert!(message(duration(text)).contains("m for minutes"), "{text}: {}", message(duration(text)));
        }
        for text in ["1 month", "1mo", "1y", "P1M"] {
            assert!(message(duration(text)).contains("such as 30d"), "{text}: {}", message(duration(text)));
        }
        for text in ["soon", "10", "", "-5s"] {
            assert!(message(duration(text)).contains("is not a duration"), "{text}");
        }
    }

    #[test]
    fn an_annotation_names_the_zone_of_an_instant() {
        let utc = |text: &str| instant(text).unwrap().to_string();
        assert_eq!(utc("2100-01-01T03:00[America/New_York]"), "2100-01-01T08:00:00.000Z");
        assert_eq!(utc("2100-01-01T03:00-05:00[America/New_York]"), "2100-01-01T08:00:00.000Z");
        assert_eq!(utc("2100-01-01T03:00:00+02:00"), "2100-01-01T01:00:00.000Z");
        assert!(message(instant("2100-01-01T03:00Z[Nowhere/Atlantis]")).contains("Nowhere/Atlantis"));
        assert!(message(instant("2100-01-01T03:00+03:00[America/New_York]")).contains("America/New_York"));
        assert!(message(instant("9000-01-01T00:00:00Z")).contains("too far ahead"));
        assert!(message(instant("yesterday")).contains("expected RFC 3339"));
    }
}
