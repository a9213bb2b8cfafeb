//! Which value of a JSON text stands at a line and column: serde_json tells where an error is, people want to know what it is about.
//!
//! The text was read up to there without an error of syntax, or the place does not matter much.

/// A place is cut after so many bytes.
const LONGEST: usize = 200;

/// The value that was being read at a line and column as serde_json counts them, such as `items[2].price`; empty at the top.
pub(crate) fn of(json: &str, line: usize, column: usize) -> String {
    let begin: usize = json.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = json.floor_char_boundary(begin + column);
    let mut walk = Walk { open: Vec::new() };
    walk.over(&json[..end]);
    walk.place()
}

/// The objects and arrays that are open.
struct Walk {
    open: Vec<Open>,
}

enum Open {
    /// With the key, still quoted, of the value that is being read; it is one once its colon was seen.
    Object { key: String, colon: bool },
    /// With the index of the element that is being read, or read next.
    Array { index: usize, begun: bool },
}

impl Walk {
    fn over(&mut self, json: &str) {
        let mut rest = json;
        while let Some(first) = rest.chars().next() {
            let token = if first == '"' { string_length(rest) } else { first.len_utf8() };
            let (text, after) = rest.split_at(token);
            self.take(first, text);
            rest = after;
        }
    }

    fn take(&mut self, first: char, text: &str) {
        if !matches!(first, ' ' | '\t' | '\r' | '\n' | ',' | ']' | '}')
            && let Some(Open::Array { begun, .. }) = self.open.last_mut()
        {
            *begun = true;
        }
        match (first, self.open.last_mut()) {
            ('{', _) => self.open.push(Open::Object { key: String::new(), colon: false }),
            ('[', _) => self.open.push(Open::Array { index: 0, begun: false }),
            ('}' | ']', _) => drop(self.open.pop()),
            ('"', Some(Open::Object { key, colon: false })) => *key = text.into(),
            (':', Some(Open::Object { colon, .. })) => *colon = true,
            (',', Some(Open::Object { colon, .. })) => *colon = false,
            (',', Some(Open::Array { index, begun })) => (*index, *begun) = (*index + 1, false),
            _ => {}
        }
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for open in &self.open {
            match open {
                Open::Object { key, colon: true } => push_key(&mut place, key),
                Open::Array { index, begun: true } => place.push_str(&format!("[{index}]")),
                _ => {}
            }
        }
        if place.len() > LONGEST {
            place.truncate(place.floor_char_boundary(LONGEST));
            place.push('…');
        }
        place
    }
}

/// Appends `.key`, or `["key"]` if it is no plain word.
fn push_key(place: &mut String, quoted: &str) {
    let word = quoted.trim_matches('"');
    if word.is_empty() || !word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        place.push_str(&format!("[{quoted}]"));
        return;
    }
    if !place.is_empty() {
        place.push('.');
    }
    place.push_str(word);
}

/// Bytes of the string at the beginning of a text, with its quotes; all of the text if the string does not end.
fn string_length(text: &str) -> usize {
    let mut escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Order {
        id: u32,
        #[serde(default)]
        items: Vec<Item>,
        kind: Option<Kind>,
        pair: Option<(u8, u8)>,
        notes: Option<BTreeMap<String, bool>>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Item {
        name: String,
        price: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Gift,
    }

    fn place<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
        let error = serde_json::from_str::<T>(json).unwrap_err();
        of(json, error.line(), error.column())
    }

    #[test]
    fn names_the_value_that_is_wrong() {
        for (json, expected) in [
            (r#"{"id": "x"}"#, "id"),
            (r#"{"id": -1, "items": []}"#, "id"),
            (r#"{"id": {"a": 1}}"#, "id"),
            (r#"{"id": [1]}"#, "id"),
            (r#"{"id": 1, "items": [{"name": "a", "price": 1}, {"name": "b", "price": "two"}]}"#, "items[1].price"),
            (r#"{"id": 1, "items": [{"name": "a", "price": 1}, {"name": "b"}]}"#, "items[1]"),
            (r#"{"id": 1, "items": [7]}"#, "items[0]"),
            (r#"{"id": 1, "items": 7}"#, "items"),
            (r#"{"id": 1, "kind": "loan"}"#, "kind"),
            (r#"{"id": 1, "pair": [1]}"#, "pair"),
            (r#"{"id": 1, "pair": [1, 300]}"#, "pair[1]"),
            (r#"{"id": 1, "notes": {"a b": 1}}"#, r#"notes["a b"]"#),
            (r#"{"id": 1, "notes": {"\"]": 1}}"#, r#"notes["\"]"]"#),
            ("{\n  \"id\": 1,\n  \"items\": [\n    {\"name\": \"ünï\",\n     \"price\": null}]}", "items[0].price"),
        ] {
            assert_eq!(place::<Order>(json), expected, "{json}");
        }
    }

    #[test]
    fn is_empty_at_the_top() {
        for json in ["", "[]", "7", "{}", r#"{"id": 1, "idd": 2}"#, r#"{"items": []}"#] {
            assert_eq!(place::<Order>(json), "", "{json}");
        }
        assert_eq!(place::<Vec<u8>>("[1, 2, 300]"), "[2]");
    }

    #[test]
    fn any_text_and_any_place_will_do() {
        for json in ["", "\"", "}}]]::,,", "{\"a\\", "ü\nü", "[[[[", "{\"a\":{\"b\":[\"\\\"\",{"] {
            for line in 0..4 {
                for column in 0..24 {
                    of(json, line, column);
                }
            }
        }
    }

    #[test]
    fn a_long_one_is_cut() {
        let json = format!("{{\"{}\":", "ü".repeat(500));
        assert!(of(&json, 1, json.len()).len() < LONGEST + 8);
    }
}
