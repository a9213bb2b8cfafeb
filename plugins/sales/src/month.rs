//! A month of a calendar year, which is all that the totals need of a date.

use std::fmt;

/// As in 2026-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: u16,
    month: u8,
}

impl Month {
    /// The month of a date written as YYYY-MM-DD; the error says what is wrong with anything else.
    pub(crate) fn of(date: &str) -> Result<Month, &'static str> {
        let bytes = date.as_bytes();
        let shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Err("is not written as YYYY-MM-DD");
        }
        let number = |from, to| bytes[from..to].iter().fold(0_u16, |number, byte| number * 10 + u16::from(byte - b'0'));
        let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
        if day == 0 || day > days(year, month) {
            return Err("is not a day of the calendar");
        }
        Ok(Month { year, month: month as u8 })
    }
}

/// Days of a month; none, if there is no such month.
fn days(year: u16, month: u16) -> u16 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl serde::Serialize for Month {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dates() {
        for (date, month) in [("2026-01-31", "2026-01"), ("2024-02-29", "2024-02"), ("2000-02-29", "2000-02")] {
            assert_eq!(Month::of(date).map(|month| month.to_string()), Ok(month.to_string()));
        }
    }

    #[test]
    fn refuses_days_that_never_were() {
        for date in ["2026-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-06-00"] {
            assert_eq!(Month::of(date), Err("is not a day of the calendar"), "{date}");
        }
    }

    #[test]
    fn refuses_other_notations() {
        for date in ["", "2026-1-5", "05/01/2026", "2026-01-05T00:00", "2026/01/05", "20260105", "２026-01-05"] {
            assert_eq!(Month::of(date), Err("is not written as YYYY-MM-DD"), "{date}");
        }
    }

    #[test]
    fn sorts_by_time() {
        assert!(Month::of("2025-12-01").unwrap() < Month::of("2026-01-01").unwrap());
    }
}
