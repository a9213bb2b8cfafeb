//! Text and numbers as a page shows them.

use std::fmt;

use sales::Amount;

/// A text that came from outside, with everything escaped that HTML could take for its own.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // HTML knows no NUL, and nobody sees the others.
                control if control.is_control() && control != '\n' => f.write_str("\u{fffd}")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

/// An amount with commas between the thousands.
pub(crate) fn money(amount: Amount) -> String {
    let text = amount.to_string();
    let (sign, digits) = if let Some(digits) = text.strip_prefix('-') { ("-", digits) } else { ("", &*text) };
    let whole = digits.split('.').next().unwrap_or(digits);
    format!("{sign}{}{}", thousands(whole), &digits[whole.len()..])
}

/// A count with commas between the thousands.
pub(crate) fn count(number: u64) -> String {
    thousands(&number.to_string())
}

fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_html() {
        assert_eq!(
            Text("<script>alert('x')</script> & \"y\" \0 ñ").to_string(),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot; \u{fffd} ñ"
        );
    }

    #[test]
    fn thousands_are_set_apart() {
        for (text, shown) in
            [("0", "0.00"), ("-999.5", "-999.50"), ("1000", "1,000.00"), ("-1234567.89", "-1,234,567.89")]
        {
            assert_eq!(money(Amount::parse(text).unwrap()), shown);
        }
        assert_eq!([count(0), count(999), count(1_000_000)], ["0", "999", "1,000,000"]);
    }
}
