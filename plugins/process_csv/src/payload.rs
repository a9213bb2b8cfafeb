//! What the job asks for.

use crate::failure::Failure;

/// Where the host shows the granted directory.
pub(crate) const ROOT: &str = "/data";

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Payload {
    /// The file, relative to [`ROOT`]; a path that begins with it is fine too.
    pub(crate) path: String,
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

impl Payload {
    /// Reads a payload; its path is relative to [`ROOT`] afterwards.
    pub(crate) fn parse(json: &str) -> Result<Payload, Failure> {
        let mut payload: Payload =
            serde_json::from_str(json).map_err(|error| Failure::Fatal(format!("bad payload: {error}")))?;
        payload.path = inside_root(&payload.path)
            .map_err(|wrong| Failure::Fatal(format!("bad payload: path {:?} {wrong}", payload.path)))?;
        Ok(payload)
    }
}

/// The sandbox would refuse a path that leads out; this says so in words.
fn inside_root(path: &str) -> Result<String, &'static str> {
    let relative = match path.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/')) {
        Some(relative) => relative,
        None if path.starts_with('/') => return Err("is not in /data, the only directory this handler has"),
        None => path,
    };
    if relative.split('/').any(|part| part == "..") {
        return Err("leads out of /data");
    }
    let parts: Vec<&str> = relative.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() {
        return Err("names no file");
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Result<String, &'static str> {
        inside_root(path)
    }

    #[test]
    fn reads_both_formats() {
        assert_eq!(
            Payload::parse(r#"{"path": "sales.csv", "format": "monthly"}"#),
            Ok(Payload { path: "sales.csv".into(), format: Format::Monthly })
        );
        assert_eq!(
            Payload::parse(r#"{"path": "/data/2026/sales.csv", "format": "category"}"#),
            Ok(Payload { path: "2026/sales.csv".into(), format: Format::Category })
        );
    }

    #[test]
    fn a_bad_payload_is_fatal_and_says_why() {
        for (json, message) in [
            ("", "bad payload: EOF while parsing a value at line 1 column 0"),
            (r#"{"format": "monthly"}"#, "bad payload: missing field `path` at line 1 column 21"),
            (r#"{"path": "a.csv"}"#, "bad payload: missing field `format` at line 1 column 17"),
            (
                r#"{"path": "a.csv", "format": "weekly"}"#,
                "bad payload: unknown variant `weekly`, expected `monthly` or `category` at line 1 column 36",
            ),
            (
                r#"{"path": "a.csv", "fromat": "monthly"}"#,
                "bad payload: unknown field `fromat`, expected `path` or `format` at line 1 column 26",
            ),
            (r#"{"path": "../a.csv", "format": "monthly"}"#, r#"bad payload: path "../a.csv" leads out of /data"#),
        ] {
            assert_eq!(Payload::parse(json), Err(Failure::Fatal(message.into())));
        }
    }

    #[test]
    fn paths_stay_inside() {
        assert_eq!(path("./a//b.csv"), Ok("a/b.csv".into()));
        assert_eq!(path("/data/./a.csv"), Ok("a.csv".into()));
        assert_eq!(path("..a/b..csv"), Ok("..a/b..csv".into()));
        for out in ["..", "a/../../b", "/data/../etc/passwd", "/data/.."] {
            assert_eq!(path(out), Err("leads out of /data"), "{out}");
        }
        for absolute in ["/etc/passwd", "/database/a.csv", "/", "/data"] {
            assert_eq!(path(absolute), Err("is not in /data, the only directory this handler has"), "{absolute}");
        }
        for nothing in ["", ".", "./", "/data/"] {
            assert_eq!(path(nothing), Err("names no file"), "{nothing}");
        }
    }
}
