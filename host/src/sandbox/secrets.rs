//! Values that only the guest may read. In its output they are replaced by their names.
//!
//! This prevents accidental leaks into logs and results. A guest that encodes a secret, or prints half of it, leaks it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Bytes of the shortest secret. Shorter ones would be found and replaced in unrelated text.
pub const SHORTEST_SECRET: usize = 8;

/// Bytes of the longest secret.
pub const LONGEST_SECRET: usize = 8 << 10;

/// The most verbose levels at which a program may log these libraries, as directives for tracing's `Targets`. At lower
/// levels they log the arguments of a guest's calls, including secrets.
pub const LOG_BOUNDS: [&str; 2] = ["wasmtime_wasi=info", "wasmtime_wasi_http=info"];

/// A value that `Debug` doesn't show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: &str) -> Self {
        Self(value.into())
    }

    /// The value itself.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The secrets of a job type by the names of their variables. Cheap to clone; costs nothing if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets(Option<Arc<Known>>);

#[derive(PartialEq, Eq)]
struct Known {
    values: BTreeMap<String, Secret>,
    /// The texts to replace, the longest first.
    forms: Vec<Form>,
}

/// One way a secret may be written, and the name that replaces it.
#[derive(PartialEq, Eq)]
struct Form {
    text: String,
    name: String,
}

impl Secrets {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The names of the variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values().map(|(name, _)| name)
    }

    /// Name and value of each.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().flat_map(|known| known.values.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// The name of a secret that occurs in `text`.
    pub(super) fn found_in(&self, text: &str) -> Option<&str> {
        let known = self.0.as_ref()?;
        known.forms.iter().find(|form| text.contains(&form.text)).map(|form| form.name.as_str())
    }

    /// Replaces each secret in `text` with `[secret NAME]`.
    pub(super) fn redact(&self, mut text: String) -> String {
        for form in self.0.iter().flat_map(|known| &known.forms) {
            if text.contains(&form.text) {
                text = text.replace(&form.text, &format!("[secret {}]", form.name));
            }
        }
        text
    }

    /// The same for a result: JSON stays JSON, even if the secret wasn't inside a string.
    pub(super) fn redact_result(&self, text: String) -> String {
        let Some(name) = self.found_in(&text) else { return text };
        let whole = format!("\"[secret {name}]\"");
        let was_json = is_json(&text);
        let redacted = self.redact(text);
        if was_json && !is_json(&redacted) { whole } else { redacted }
    }

    /// How many bytes at the end of `text` could be the beginning of a secret.
    pub(super) fn partial_at_end_of(&self, text: &[u8]) -> usize {
        let forms = self.0.iter().flat_map(|known| &known.forms);
        forms.map(|form| longest_prefix_at_end(form.text.as_bytes(), text)).max().unwrap_or(0)
    }

    /// Bytes of the longest text that is replaced.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().flat_map(|known| &known.forms).map(|form| form.text.len()).max().unwrap_or(0)
    }
}

impl FromIterator<(String, Secret)> for Secrets {
    fn from_iter<I: IntoIterator<Item = (String, Secret)>>(secrets: I) -> Self {
        let values: BTreeMap<String, Secret> = secrets.into_iter().collect();
        if values.is_empty() {
            return Self(None);
        }
        let mut forms: Vec<Form> = values.iter().flat_map(|(name, value)| forms_of(name, value.reveal())).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.text.len()));
        Self(Some(Arc::new(Known { values, forms })))
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.values).finish()
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The length of the longest proper prefix of `form` that `text` ends with.
fn longest_prefix_at_end(form: &[u8], text: &[u8]) -> usize {
    (1..form.len().min(text.len() + 1)).rev().find(|&len| text.ends_with(&form[..len])).unwrap_or(0)
}

/// The value itself, each of its lines (stderr is kept by line), and each of these in all its JSON spellings.
fn forms_of(name: &str, value: &str) -> Vec<Form> {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_SECRET);
    let mut texts: Vec<String> = Vec::new();
    for plain in std::iter::once(value).chain(lines) {
        let json = in_json(plain);
        let spellings = [json.replace('/', "\\/"), for_html(&json), json];
        for text in spellings {
            let (lower, upper) =
                (in_ascii(&text, |unit| format!("\\u{unit:04x}")), in_ascii(&text, |unit| format!("\\u{unit:04X}")));
            texts.extend([text, lower, upper]);
        }
        // Lower case as the host of a URL.
        texts.extend([plain.to_owned(), plain.to_ascii_lowercase()]);
    }
    texts.sort();
    texts.dedup();
    texts.into_iter().map(|text| Form { text, name: name.to_owned() }).collect()
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The spelling of encoders that produce HTML-safe JSON, such as Go's.
fn for_html(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// The spelling of encoders that only emit ASCII.
fn in_ascii(json: &str, escape: impl Fn(&mut u16) -> String) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            text.extend(c.encode_utf16(&mut [0; 2]).iter_mut().map(&escape));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(value: &str) -> Secrets {
        [("KEY".to_owned(), Secret::new(value))].into_iter().collect()
    }

    #[test]
    fn debug_output_does_not_show_a_secret() {
        let shown = format!("{:?}", secrets("hunter2hunter2"));
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_secret_is_replaced_in_every_json_spelling() {
        let value = "a/b\"c\\d\u{e9}\u{1f600}\n";
        let secrets = secrets(value);
        for text in [
            value.to_owned(),
            serde_json::Value::from(value).to_string(),
            r#"{"k":"a\/b\"c\\d\u00e9\ud83d\ude00\n"}"#.to_owned(),
            r#"{"k":"a/b\"c\\d\u00e9\ud83d\ude00\n"}"#.to_owned(),
            r#"{"k":"a/b\"c\\d\u00E9\uD83D\uDE00\n"}"#.to_owned(),
        ] {
            let redacted = secrets.redact(format!("<{text}>"));
            assert!(
                redacted.contains("[secret KEY]") && !redacted.contains("a/b") && !redacted.contains("a\\/b"),
                "{redacted}"
            );
        }
    }

    #[test]
    fn a_secret_is_replaced_in_html_safe_json_and_as_a_host_name() {
        let secrets = secrets("P&ss<word>+1");
        assert_eq!(secrets.redact(r"{\u0026} P\u0026ss\u003cword\u003e+1".into()), r"{\u0026} [secret KEY]");
        assert_eq!(secrets.redact("http://p&ss<word>+1.example".into()), "http://[secret KEY].example");
    }

    #[test]
    fn each_line_of_a_multi_line_secret_is_replaced() {
        let secrets = secrets("-----BEGIN KEY-----\nAAAABBBBCCCC\nx\n-----END KEY-----");
        assert_eq!(secrets.redact("read AAAABBBBCCCC and x".into()), "read [secret KEY] and x");
    }

    #[test]
    fn the_longest_secret_is_replaced_first() {
        let secrets: Secrets = [("SHORT", "password"), ("LONG", "password-and-more")]
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .into_iter()
            .collect();
        assert_eq!(secrets.redact("password-and-more password".into()), "[secret LONG] [secret SHORT]");
    }

    #[test]
    fn a_redacted_result_stays_json() {
        let secrets = secrets("12345678");
        assert_eq!(secrets.redact_result(r#"{"k":"12345678"}"#.into()), r#"{"k":"[secret KEY]"}"#);
        assert_eq!(secrets.redact_result(r#"{"k":12345678}"#.into()), r#""[secret KEY]""#);
        assert_eq!(secrets.redact_result("text 12345678".into()), "text [secret KEY]");
        assert_eq!(secrets.redact_result("1.0".into()), "1.0");
    }

    #[test]
    fn the_beginning_of_a_secret_at_the_end_is_found() {
        let secrets = secrets("hunter2hunter2");
        for (text, len) in [("a hunter2", 7), ("a hunter2h", 8), ("a", 0), ("", 0), ("hunter2hunter2", 7), ("x h", 1)] {
            assert_eq!(secrets.partial_at_end_of(text.as_bytes()), len, "{text}");
        }
    }

    #[test]
    fn without_secrets_nothing_changes() {
        let none = Secrets::default();
        assert!(none.is_empty() && [].into_iter().collect::<Secrets>().is_empty());
        assert_eq!(none.redact("text".into()), "text");
    }
}
