//! Payloads and results: serde values or raw JSON text.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Types that a payload can be parsed into: owned types that implement [`serde::Deserialize`], and [`RawJson`].
pub trait FromJson: Sized {
    /// Parses a payload. The error continues a message that starts with "bad payload".
    #[doc(hidden)]
    fn from_json(json: &str) -> Result<Self, String>;
}

/// Types that a result or the payload of a follow-up job can have: those that implement [`serde::Serialize`], and [`RawJson`].
///
/// A result that serializes to `null`, such as `()` or `None`, is stored as an empty result.
pub trait ToJson {
    /// Serializes a result; `null` becomes an empty string.
    #[doc(hidden)]
    fn to_json(&self) -> serde_json::Result<String>;
}

/// JSON text that is kept byte for byte, including large numbers, the order of keys, and whitespace.
///
/// ```
/// # use jobq_guest::{Context, RawJson, Result, testing::Fake};
/// fn echo(RawJson(text): RawJson, _: &Context) -> Result<RawJson> {
///     Ok(RawJson(text))
/// }
///
/// assert_eq!(Fake::new().run(echo, "[12345678901234567890 ]"), Ok("[12345678901234567890 ]".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(
    /// The text. It isn't checked to be JSON.
    pub String,
);

impl<T: DeserializeOwned> FromJson for T {
    fn from_json(json: &str) -> Result<T, String> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.path().to_string() {
            path if path == "." => format!(": {}", error.inner()),
            path => format!(" at `{path}`: {}", error.inner()),
        })?;
        reader.end().map_err(|error| format!(": {error}"))?;
        Ok(value)
    }
}

impl FromJson for RawJson {
    fn from_json(json: &str) -> Result<RawJson, String> {
        Ok(RawJson(json.into()))
    }
}

impl<T: Serialize> ToJson for T {
    fn to_json(&self) -> serde_json::Result<String> {
        let json = serde_json::to_string(self)?;
        Ok(if json == "null" { String::new() } else { json })
    }
}

impl ToJson for RawJson {
    fn to_json(&self) -> serde_json::Result<String> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Order {
        id: Id,
        #[serde(default)]
        items: Vec<Item>,
        notes: Option<BTreeMap<String, bool>>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Item {
        name: String,
        price: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(try_from = "u32")]
    struct Id;

    impl TryFrom<u32> for Id {
        type Error = String;

        fn try_from(number: u32) -> Result<Id, String> {
            if number == 0 { Err("no order has the number 0".into()) } else { Ok(Id) }
        }
    }

    #[test]
    fn an_error_has_the_path_of_the_invalid_value() {
        for (json, error) in [
            (r#"{"id": "x"}"#, r#" at `id`: invalid type: string "x", expected u32 at line 1 column 10"#),
            (r#"{"id": 0}"#, " at `id`: no order has the number 0 at line 1 column 9"),
            (
                r#"{"id": 1, "items": [{"name": "a", "price": 1}, {"name": "b", "price": "two"}]}"#,
                r#" at `items[1].price`: invalid type: string "two", expected f64 at line 1 column 75"#,
            ),
            (r#"{"id": 1, "items": [{"name": "a"}]}"#, " at `items[0]`: missing field `price` at line 1 column 33"),
            (
                r#"{"id": 1, "notes": {"a b": 1}}"#,
                " at `notes.a b`: invalid type: integer `1`, expected a boolean at line 1 column 28",
            ),
        ] {
            assert_eq!(Order::from_json(json).unwrap_err(), error, "{json}");
        }
    }

    #[test]
    fn an_error_of_the_whole_payload_has_no_path() {
        for (json, error) in [
            ("", ": EOF while parsing a value at line 1 column 0"),
            ("{}", ": missing field `id` at line 1 column 2"),
            (r#"{"id": 1} x"#, ": trailing characters at line 1 column 11"),
        ] {
            assert_eq!(Order::from_json(json).unwrap_err(), error, "{json}");
        }
        let unknown = Order::from_json(r#"{"idd": 1}"#).unwrap_err();
        assert!(
            unknown.ends_with(": unknown field `idd`, expected one of `id`, `items`, `notes` at line 1 column 6"),
            "{unknown}"
        );
    }

    #[test]
    fn null_is_an_empty_result() {
        assert_eq!(().to_json().unwrap(), "");
        assert_eq!(None::<u32>.to_json().unwrap(), "");
        assert_eq!(RawJson("null".into()).to_json().unwrap(), "null");
        assert_eq!(vec![1, 2].to_json().unwrap(), "[1,2]");
    }
}
