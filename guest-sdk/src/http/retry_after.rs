//! The header `Retry-After`.

use std::time::{Duration, SystemTime};

/// How long to wait. The value is a number of seconds or a date; a date is compared with the response's `Date` header if there
/// is one. `None` if the value is neither or isn't in the future.
pub(super) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    let delay = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // If the number is too large, any large delay will do; the host caps it at 366 days.
        Duration::from_secs(value.parse().unwrap_or(u64::from(u32::MAX)))
    } else {
        let until = httpdate::parse_http_date(value).ok()?;
        let now = date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now);
        until.duration_since(now).ok()?
    };
    (!delay.is_zero()).then_some(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Option<&str> = Some("Mon, 30 Nov 2026 12:00:00 GMT");

    #[test]
    fn seconds_and_dates_are_parsed() {
        for (value, seconds) in [
            ("120", 120),
            (" 1 ", 1),
            ("99999999999999999999999", u64::from(u32::MAX)),
            ("Mon, 30 Nov 2026 12:10:00 GMT", 600),
            ("Monday, 30-Nov-26 12:00:01 GMT", 1),
        ] {
            assert_eq!(retry_after(value, NOON), Some(Duration::from_secs(seconds)), "{value}");
        }
    }

    #[test]
    fn other_values_are_ignored() {
        for value in
            ["", "0", "-1", "+5", "1.5", "soon", "Mon, 30 Nov 2026 11:59:59 GMT", "Mon, 30 Nov 2026 12:00:00 GMT"]
        {
            assert_eq!(retry_after(value, NOON), None, "{value}");
        }
    }

    #[test]
    fn a_date_counts_from_now_without_a_date_header() {
        let day = Duration::from_secs(86_400);
        let delay = retry_after(&httpdate::fmt_http_date(SystemTime::now() + day), None).unwrap();
        assert!(delay <= day && delay > day / 2, "{delay:?}");
        assert_eq!(retry_after(&httpdate::fmt_http_date(SystemTime::now() - day), Some("today")), None);
    }
}
