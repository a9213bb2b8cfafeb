//! Instants as RFC 5322 writes them.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// As in `Sun, 29 Nov 2026 23:41:18 +0000`. An instant before 1970 counts as the beginning of 1970.
pub(crate) fn rfc5322(instant: SystemTime) -> String {
    let seconds = instant.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{}, {day} {} {year} {:02}:{:02}:{:02} +0000",
        DAYS[(days % 7) as usize],
        MONTHS[month],
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// Year, month from 0 and day from 1 of a day since 1970-01-01.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn writes_dates() {
        for (seconds, written) in [
            (0, "Thu, 1 Jan 1970 00:00:00 +0000"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 +0000"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (951_868_800, "Wed, 1 Mar 2000 00:00:00 +0000"),
            (1_796_000_000, "Mon, 30 Nov 2026 00:53:20 +0000"),
            (4_107_542_400, "Mon, 1 Mar 2100 00:00:00 +0000"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 +0000"),
        ] {
            assert_eq!(rfc5322(UNIX_EPOCH + Duration::from_secs(seconds)), written);
        }
    }
}
