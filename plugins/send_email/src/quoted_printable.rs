//! Bodies in quoted-printable (RFC 2045 §6.7): any text in lines of ASCII that no mail server touches.

/// A line must not be longer, its end not counted.
const LINE: usize = 76;

/// Encodes a text; every way to end a line becomes CRLF, and the last line has an end.
pub(crate) fn encode(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    text.split('\n').map(encode_line).collect()
}

fn encode_line(line: &str) -> String {
    let bytes = line.as_bytes();
    let mut encoded = String::new();
    let mut length = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let last = at + 1 == bytes.len();
        let token = match byte {
            // Mail servers cut spaces at the end of a line, and mailbox files end a message where a line begins with "From ".
            b' ' | b'\t' if !last => char::from(byte).to_string(),
            b'F' if at == 0 && line.starts_with("From ") => "=46".into(),
            b'!'..=b'~' if byte != b'=' => char::from(byte).to_string(),
            _ => format!("={byte:02X}"),
        };
        // Room for the `=` that continues the line, unless this is its end.
        if length + token.len() + usize::from(!last) > LINE {
            encoded.push_str("=\r\n");
            length = 0;
        }
        encoded.push_str(&token);
        length += token.len();
    }
    encoded.push_str("\r\n");
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> String {
        let joined = text.replace("=\r\n", "");
        let mut bytes = Vec::new();
        let mut rest = joined.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'=' {
                bytes.push(byte);
                continue;
            }
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plain_text_stays_readable() {
        assert_eq!(encode("Hello Ana,\n\nit is 50% off.\n"), "Hello Ana,\r\n\r\nit is 50% off.\r\n");
    }

    #[test]
    fn encodes_what_would_not_arrive() {
        assert_eq!(encode("1+1=2, año \t"), "1+1=3D2, a=C3=B1o =09\r\n");
        assert_eq!(encode("From here\nFrom\nwhere \n"), "=46rom here\r\nFrom\r\nwhere=20\r\n");
        assert_eq!(encode("nul\0 and bell\u{7}"), "nul=00 and bell=07\r\n");
    }

    #[test]
    fn every_line_end_becomes_the_same() {
        assert_eq!(encode("a\r\nb\nc\rd"), "a\r\nb\r\nc\r\nd\r\n");
        assert_eq!(encode(""), "\r\n");
    }

    #[test]
    fn long_lines_are_cut_and_come_back_whole() {
        for text in
            ["x".repeat(1_000), "🦤 ñ= ".repeat(200), "x".repeat(76), "x".repeat(77), "é".repeat(13), " ".repeat(200)]
        {
            let encoded = encode(&text);
            assert!(encoded.split("\r\n").all(|line| line.len() <= LINE && line.is_ascii()), "{encoded}");
            assert!(encoded.split("\r\n").all(|line| !line.ends_with([' ', '\t'])), "{encoded}");
            assert_eq!(decode(&encoded), format!("{text}\r\n"));
        }
        assert_eq!(encode(&"x".repeat(76)).matches("=\r\n").count(), 0);
    }
}
