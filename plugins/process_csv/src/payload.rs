//! The payload. Unknown fields are ignored, so that an application can add its own.

use sales::{By, Granted};
use serde::de::{Deserializer, Error};

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct Payload {
    /// The file, relative to [`sales::ROOT`]; a path that begins with it is fine too.
    #[serde(deserialize_with = "granted")]
    pub(crate) path: Granted,
    pub(crate) format: Format,
}

/// What to add up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Months, and within them categories.
    Monthly,
    /// Categories alone.
    Category,
}

impl Format {
    pub(crate) fn by(self) -> By {
        match self {
            Format::Monthly => By::Month,
            Format::Category => By::Category,
        }
    }
}

fn granted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Granted, D::Error> {
    let path: String = serde::Deserialize::deserialize(deserializer)?;
    Granted::path(&path).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_formats() {
        for (json, path, format) in [
            (r#"{"path": "sales.csv", "format": "monthly"}"#, "sales.csv", Format::Monthly),
            (r#"{"path": "/data/2026/sales.csv", "format": "category"}"#, "2026/sales.csv", Format::Category),
        ] {
            let payload: Payload = serde_json::from_str(json).unwrap();
            assert_eq!((payload.path.as_str(), payload.format), (path, format));
        }
    }
}
