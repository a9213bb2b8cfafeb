//! Addresses: which ones are taken, and what is wrong with the others.
//!
//! The part of RFC 5322 that mail is sent to in practice: `ana@example.com`, `Ana <ana@example.com>`, `"Doe, Jane" <jane@example.com>`.

/// The longest that SMTP takes (RFC 5321).
const MAX_ADDRESS: usize = 254;
const MAX_LOCAL: usize = 64;
const MAX_LABEL: usize = 63;

/// An address, perhaps with the name of who reads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mailbox {
    pub(crate) name: Option<String>,
    pub(crate) address: String,
}

impl Mailbox {
    /// Reads one; the error goes on after the text, as in "has no `@`".
    pub(crate) fn parse(text: &str) -> Result<Mailbox, String> {
        // The first defence against a header that somebody slips in.
        if text.contains(char::is_control) {
            return Err("has a line break or another control character in it".into());
        }
        let text = text.trim();
        let (name, address) = match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
            Some((name, address)) => (plain_name(name.trim())?, address.trim()),
            None if text.contains(['<', '>']) => return Err("should be written as Name <name@example.com>".into()),
            None => (None, text),
        };
        check(address)?;
        Ok(Mailbox { name, address: address.into() })
    }

    /// What stands behind the `@`.
    pub(crate) fn domain(&self) -> &str {
        self.address.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

/// A name without its quotes.
fn plain_name(name: &str) -> Result<Option<String>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let Some(quoted) = name.strip_prefix('"') else {
        return match name.find(['"', '<', '>', '@', ',', ';']) {
            Some(at) => Err(format!(
                "has `{}` in its name; a name with that is written in quotes, \"{}\"",
                &name[at..at + 1],
                r#"\"Doe, Jane\" <jane@example.com>"#
            )),
            None => Ok(Some(name.into())),
        };
    };
    let mut plain = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if letters.as_str().is_empty() => return Ok(Some(plain).filter(|name| !name.trim().is_empty())),
            '"' => return Err("has something behind the closing quote of its name".into()),
            '\\' => plain.extend(letters.next()),
            other => plain.push(other),
        }
    }
    Err("has a quote in its name that nothing closes".into())
}

fn check(address: &str) -> Result<(), String> {
    let Some((local, domain)) = address.rsplit_once('@') else { return Err("has no `@`".into()) };
    if address.contains([',', ';']) {
        return Err("looks like several addresses; write them as a list".into());
    }
    if address.len() > MAX_ADDRESS {
        return Err(format!("is longer than {MAX_ADDRESS} bytes"));
    }
    check_local(local)?;
    check_domain(domain)
}

fn check_local(local: &str) -> Result<(), String> {
    if local.is_empty() {
        return Err("has nothing in front of its `@`".into());
    }
    if local.len() > MAX_LOCAL {
        return Err(format!("has more than {MAX_LOCAL} bytes in front of its `@`"));
    }
    if let Some(odd) = local.chars().find(|c| *c != '.' && !is_atext(*c)) {
        return Err(format!("has `{odd}` in front of its `@`"));
    }
    if local.split('.').any(str::is_empty) {
        return Err("has a dot too many in front of its `@`".into());
    }
    Ok(())
}

fn check_domain(domain: &str) -> Result<(), String> {
    if domain.is_empty() {
        return Err("has nothing behind its `@`".into());
    }
    if !domain.is_ascii() {
        return Err(format!("has the domain `{domain}`, which should be written in ASCII (xn--…)"));
    }
    let bad = |wrong: String| Err(format!("has the domain `{domain}`, {wrong}"));
    for label in domain.split('.') {
        if let Some(odd) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
            return bad(format!("which has `{odd}` in it"));
        }
        if label.is_empty() {
            return bad("which has a dot too many".into());
        }
        if label.len() > MAX_LABEL {
            return bad(format!("a part of which is longer than {MAX_LABEL} bytes"));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return bad("a part of which begins or ends with `-`".into());
        }
    }
    if !domain.contains('.') && domain != "localhost" {
        return bad("which has no dot".into());
    }
    Ok(())
}

/// What RFC 5322 lets stand in a word without quotes.
pub(crate) fn is_atext(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> (Option<String>, String) {
        let Mailbox { name, address } = Mailbox::parse(text).unwrap();
        (name, address)
    }

    #[test]
    fn takes_what_people_write() {
        for (text, name, address) in [
            ("ana@example.com", None, "ana@example.com"),
            (" ana@example.com ", None, "ana@example.com"),
            ("<ana@example.com>", None, "ana@example.com"),
            ("Ana María <ana@example.com>", Some("Ana María"), "ana@example.com"),
            ("\"Doe, Jane\" <jane.doe+x@sub.example.co>", Some("Doe, Jane"), "jane.doe+x@sub.example.co"),
            (r#""Jane \"J\" \\ Doe" <j@xn--bcher-kva.example>"#, Some(r#"Jane "J" \ Doe"#), "j@xn--bcher-kva.example"),
            ("\"\" <ana@example.com>", None, "ana@example.com"),
            ("O'Neil/dept=x@localhost", None, "O'Neil/dept=x@localhost"),
        ] {
            assert_eq!(names(text), (name.map(String::from), address.into()), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_the_others() {
        let long = format!("{}@example.com", "a".repeat(65));
        let longer = format!("a@{}com", "a23456789.".repeat(26));
        for (text, wrong) in [
            ("", "has no `@`"),
            ("ana", "has no `@`"),
            ("@example.com", "has nothing in front of its `@`"),
            ("ana@", "has nothing behind its `@`"),
            ("ana@@example.com", "has `@` in front of its `@`"),
            ("an a@example.com", "has ` ` in front of its `@`"),
            ("aña@example.com", "has `ñ` in front of its `@`"),
            ("ana..b@example.com", "has a dot too many in front of its `@`"),
            (".ana@example.com", "has a dot too many in front of its `@`"),
            ("ana@example", "has the domain `example`, which has no dot"),
            ("ana@example..com", "has the domain `example..com`, which has a dot too many"),
            ("ana@example.com.", "has the domain `example.com.`, which has a dot too many"),
            ("ana@exa_mple.com", "has the domain `exa_mple.com`, which has `_` in it"),
            ("ana@[10.0.0.1]", "has the domain `[10.0.0.1]`, which has `[` in it"),
            ("ana@-example.com", "has the domain `-example.com`, a part of which begins or ends with `-`"),
            ("ana@bücher.example", "has the domain `bücher.example`, which should be written in ASCII (xn--…)"),
            ("ana@example.com, bob@example.com", "looks like several addresses; write them as a list"),
            ("Ana <ana@example.com", "should be written as Name <name@example.com>"),
            ("ana@example.com\r\nBcc: all@example.com", "has a line break or another control character in it"),
            ("ana\n <ana@example.com>", "has a line break or another control character in it"),
            ("ana@example.com\0", "has a line break or another control character in it"),
            ("\"Ana <ana@example.com>", "has a quote in its name that nothing closes"),
            ("\"Ana\" x <ana@example.com>", "has something behind the closing quote of its name"),
            (&long, "has more than 64 bytes in front of its `@`"),
            (&longer, "is longer than 254 bytes"),
        ] {
            assert_eq!(Mailbox::parse(text), Err(wrong.into()), "{text}");
        }
        let comma = Mailbox::parse("Doe, Jane <jane@example.com>").unwrap_err();
        assert!(comma.starts_with("has `,` in its name; a name with that is written in quotes"), "{comma}");
    }
}
