//! Money, exact to the cent.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// Hundredths. A line's amount is read into 64 bits, so that no sum of lines can overflow the 128 bits here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

impl Amount {
    /// Reads `12`, `12.5`, `-12.50`; the error says what is wrong with anything else.
    pub fn parse(text: &str) -> Result<Amount, &'static str> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, cents) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(cents) {
            return Err("is not a decimal number such as -1234.50");
        }
        let cents: i64 = match cents.len() {
            1 => format!("{cents}0").parse().map_err(|_| TOO_LARGE)?,
            2 => cents.parse().map_err(|_| TOO_LARGE)?,
            _ => return Err("has more than two decimals"),
        };
        let whole: i64 = whole.parse().map_err(|_| TOO_LARGE)?;
        let all = whole.checked_mul(100).and_then(|all| all.checked_add(cents)).ok_or(TOO_LARGE)?;
        Ok(Amount(i128::from(if negative { -all } else { all })))
    }

    /// The same in hundredths.
    pub fn cents(self) -> i128 {
        self.0
    }
}

const TOO_LARGE: &str = "is too large";

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.0 += other.0;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(amounts: I) -> Amount {
        Amount(amounts.map(|amount| amount.0).sum())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", cents / 100, cents % 100)
    }
}

/// As a string: a JSON number is a binary fraction to most readers.
impl serde::Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_exact_decimals() {
        for (text, written) in [
            ("0", "0.00"),
            ("12", "12.00"),
            ("12.5", "12.50"),
            ("12.05", "12.05"),
            ("-0.07", "-0.07"),
            ("-12.50", "-12.50"),
            ("007.10", "7.10"),
            ("92233720368547758.07", "92233720368547758.07"),
        ] {
            assert_eq!(Amount::parse(text).map(|amount| amount.to_string()), Ok(written.to_string()), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for text in ["", "-", ".5", "5.", "1,50", "1 000", "+5", "--5", "1e3", "NaN", "0x10", "٣", "1.2.3", "5€"] {
            assert_eq!(Amount::parse(text), Err("is not a decimal number such as -1234.50"), "{text}");
        }
        assert_eq!(Amount::parse("1.234"), Err("has more than two decimals"));
        assert_eq!(Amount::parse("92233720368547758.08"), Err(TOO_LARGE));
        assert_eq!(Amount::parse("99999999999999999999"), Err(TOO_LARGE));
    }

    #[test]
    fn ten_dimes_are_a_dollar() {
        let dollar: Amount = (0..10).map(|_| Amount::parse("0.10").unwrap()).sum();
        assert_eq!(dollar.to_string(), "1.00");
    }

    #[test]
    fn the_largest_amounts_add_up() {
        let largest = Amount::parse("92233720368547758.07").unwrap();
        let mut sum = largest;
        sum += largest;
        assert_eq!(sum.to_string(), "184467440737095516.14");
    }
}
