//! Payloads and results: values of serde, or JSON text as it is.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::place;

/// What a payload can be read into: all that implements [`serde::Deserialize`] and owns its data, and [`RawJson`].
pub trait FromJson: Sized {
    /// Reads a payload; the error is the end of a sentence that begins with "bad payload".
    #[doc(hidden)]
    fn from_json(json: &str) -> Result<Self, String>;
}

/// What a result or the payload of a follow-up can be made from: all that implements [`serde::Serialize`], and [`RawJson`].
///
/// A result that is `null` in JSON, such as `()` or `None`, is stored as no result.
pub trait ToJson {
    /// Writes a result, `null` as no text at all.
    #[doc(hidden)]
    fn to_json(&self) -> serde_json::Result<String>;
}

/// JSON text that is passed on byte for byte: numbers of twenty digits, the order of keys, the spaces between.
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
    /// The text. Nobody checks that it is JSON.
    pub String,
);

impl<T: DeserializeOwned> FromJson for T {
    fn from_json(json: &str) -> Result<T, String> {
        serde_json::from_str(json).map_err(|error| match place::of(json, error.line(), error.column()) {
            place if place.is_empty() => format!(": {error}"),
            place => format!(" at `{place}`: {error}"),
        })
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
