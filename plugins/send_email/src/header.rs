//! Header lines: folded, and encoded where they are not plain ASCII (RFC 5322 §2.2.3, RFC 2047).

use crate::address::{Mailbox, is_atext};

/// A line with encoded words must not be longer (RFC 2047 §2), and no other should be much longer (RFC 5322 §2.1.1).
const LINE: usize = 76;

/// An encoded word must not be longer (RFC 2047 §2).
const ENCODED_WORD: usize = 75;

/// A longer word is encoded, because encoded words can be cut.
const PLAIN_WORD: usize = 60;

/// Bytes of an encoded word around its text: `=?utf-8?q?` and `?=`.
const AROUND: usize = 12;

/// A field whose value is text for people.
pub(crate) fn text(name: &str, value: &str) -> String {
    if is_plain(value) {
        fold(name, value.split(' ').map(String::from))
    } else {
        fold(name, encoded_words(name, value).into_iter())
    }
}

/// A field whose value is a list of addresses.
pub(crate) fn mailboxes(name: &str, mailboxes: &[Mailbox]) -> String {
    let last = mailboxes.len().saturating_sub(1);
    let words = mailboxes.iter().enumerate().flat_map(|(at, mailbox)| {
        let mut words = mailbox.name.as_deref().map(|person| phrase(name, person)).unwrap_or_default();
        let comma = if at < last { "," } else { "" };
        words.push(match words.is_empty() {
            true => format!("{}{comma}", mailbox.address),
            false => format!("<{}>{comma}", mailbox.address),
        });
        words
    });
    fold(name, words)
}

/// Joins words by spaces, or by a fold where the line would become too long.
fn fold(name: &str, words: impl Iterator<Item = String>) -> String {
    let mut field = format!("{name}:");
    let mut line = field.len();
    for (at, word) in words.enumerate() {
        if at > 0 && line + 1 + word.len() > LINE {
            field.push_str("\r\n");
            line = 0;
        }
        field.push(' ');
        field.push_str(&word);
        line += 1 + word.len();
    }
    field.push_str("\r\n");
    field
}

/// Whether a text can stand as it is: words of ASCII with single spaces between, none too long for a line and none like an encoded one.
fn is_plain(text: &str) -> bool {
    text.split(' ').all(|word| {
        let visible = word.bytes().all(|byte| byte.is_ascii_graphic());
        !word.is_empty() && visible && word.len() <= PLAIN_WORD && !word.contains("=?")
    })
}

/// The name in front of an address: words, a quoted string, or encoded words.
fn phrase(field: &str, name: &str) -> Vec<String> {
    if is_plain(name) && name.chars().all(|c| c == ' ' || is_atext(c)) {
        return name.split(' ').map(String::from).collect();
    }
    let quoted = format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let visible = name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if visible && quoted.len() <= PLAIN_WORD && !name.contains("=?") {
        return vec![quoted];
    }
    encoded_words(field, name)
}

/// Encoded words that together read as the text: a reader drops the space between two of them. The first fits behind `field`.
fn encoded_words(field: &str, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut room = ENCODED_WORD - AROUND - field.len() - 1;
    for letter in text.chars() {
        let letter = encoded(letter);
        if word.len() + letter.len() > room {
            words.push(std::mem::take(&mut word));
            room = ENCODED_WORD - AROUND;
        }
        word.push_str(&letter);
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words.iter().map(|word| format!("=?utf-8?q?{word}?=")).collect()
}

/// A character of the `q` encoding, with only what may stand as it is in a name too (RFC 2047 §5).
fn encoded(letter: char) -> String {
    match letter {
        ' ' => "_".into(),
        'a'..='z' | 'A'..='Z' | '0'..='9' | '!' | '*' | '+' | '-' | '/' => letter.into(),
        _ => letter.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("={byte:02X}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a field as a mail program does: unfolds it, decodes its encoded words.
    fn read(field: &str) -> String {
        let unfolded = field.strip_suffix("\r\n").unwrap().replace("\r\n ", " ");
        let joined = unfolded.replace("?= =?utf-8?q?", "");
        let Some((before, rest)) = joined.split_once("=?utf-8?q?") else { return joined };
        let (word, after) = rest.split_once("?=").unwrap();
        let mut bytes = Vec::new();
        let mut letters = word.bytes();
        while let Some(letter) = letters.next() {
            match letter {
                b'_' => bytes.push(b' '),
                b'=' => {
                    let digits = [letters.next().unwrap(), letters.next().unwrap()];
                    bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                }
                other => bytes.push(other),
            }
        }
        format!("{before}{}{after}", String::from_utf8(bytes).unwrap())
    }

    fn check_lines(field: &str) {
        for line in field.strip_suffix("\r\n").unwrap().split("\r\n") {
            assert!(line.len() <= LINE && line.is_ascii() && !line.trim().is_empty(), "{line:?}");
            assert!(line.split(' ').all(|word| !word.starts_with("=?") || word.len() <= ENCODED_WORD), "{line:?}");
        }
    }

    fn mailbox(text: &str) -> Mailbox {
        Mailbox::parse(text).unwrap()
    }

    #[test]
    fn plain_ascii_stays_readable() {
        assert_eq!(text("Subject", "Your order #17: 50% off!"), "Subject: Your order #17: 50% off!\r\n");
    }

    #[test]
    fn long_lines_are_folded_between_words() {
        let subject = "word ".repeat(60);
        let field = text("Subject", subject.trim());
        check_lines(&field);
        assert_eq!(read(&field), format!("Subject: {}", subject.trim()));
        assert!(field.starts_with("Subject: word word") && field.contains("\r\n word"));
    }

    #[test]
    fn other_letters_are_encoded_and_never_cut_in_two() {
        for subject in [
            "Café",
            "Bienvenida, Ana María ✉️",
            &"ñandú 🦤 ".repeat(40),
            &"x".repeat(500),
            "=?utf-8?q?not_encoded?=",
            " leading",
            "trailing ",
            "two  spaces",
        ] {
            let field = text("Subject", subject);
            check_lines(&field);
            assert_eq!(read(&field), format!("Subject: {subject}"));
        }
        assert_eq!(text("Subject", ""), "Subject:\r\n");
        assert_eq!(text("Subject", "Café crème"), "Subject: =?utf-8?q?Caf=C3=A9_cr=C3=A8me?=\r\n");
    }

    #[test]
    fn names_are_quoted_or_encoded_where_they_have_to_be() {
        for (name, expected) in [
            ("ana@example.com", "To: ana@example.com\r\n"),
            ("Ana B <ana@example.com>", "To: Ana B <ana@example.com>\r\n"),
            ("\"Doe, Jane\" <j@example.com>", "To: \"Doe, Jane\" <j@example.com>\r\n"),
            ("J. Doe <j@example.com>", "To: \"J. Doe\" <j@example.com>\r\n"),
            (r#""a\"b\\c" <j@example.com>"#, "To: \"a\\\"b\\\\c\" <j@example.com>\r\n"),
            ("José <j@example.com>", "To: =?utf-8?q?Jos=C3=A9?= <j@example.com>\r\n"),
        ] {
            assert_eq!(mailboxes("To", &[mailbox(name)]), expected);
        }
    }

    #[test]
    fn a_long_list_of_addresses_is_folded() {
        let all: Vec<Mailbox> = (0..50).map(|n| mailbox(&format!("Núm {n} <person.{n}@example.com>"))).collect();
        let field = mailboxes("To", &all);
        check_lines(&field);
        assert_eq!(field.matches(',').count(), 49);
        let field = mailboxes("Cc", &[mailbox("a@example.com"), mailbox("B <b@example.com>")]);
        assert_eq!(field, "Cc: a@example.com, B <b@example.com>\r\n");
    }
}
