//! The payload. Unknown fields are ignored, so that an application can add its own.

use sales::Granted;
use serde::de::{Deserialize, Deserializer, Error};

#[derive(Debug, serde::Deserialize)]
pub(crate) struct Payload {
    /// The file, relative to [`sales::ROOT`].
    #[serde(deserialize_with = "granted")]
    pub(crate) path: Granted,
    title: Option<String>,
    /// The name of the report; by default that of the job.
    file: Option<String>,
}

impl Payload {
    pub(crate) fn parse(json: &str) -> Result<Payload, String> {
        serde_json::from_str(json).map_err(|error| format!("bad payload: {error}"))
    }

    pub(crate) fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| format!("Sales in {}", self.path.as_str()))
    }

    /// The report is named as asked for or after the job, so that a job which runs twice leaves one report.
    pub(crate) fn file_name(&self, job_id: Option<&str>) -> Result<String, String> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => format!("{}.html", job_id.unwrap_or("report")),
        };
        let plain = file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !plain || file.starts_with('.') || !file.ends_with(".html") || file.len() > 100 {
            return Err(format!("the report cannot be called {file:?}: a name such as \"november-2026.html\" will do"));
        }
        Ok(file)
    }
}

fn granted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Granted, D::Error> {
    Granted::path(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_and_name_come_by_default() {
        let payload = Payload::parse(r#"{"path": "/data/2026/sales.csv"}"#).unwrap();
        assert_eq!(payload.title(), "Sales in 2026/sales.csv");
        assert_eq!(payload.file_name(Some("0193-7")), Ok("0193-7.html".into()));
        assert_eq!(payload.file_name(None), Ok("report.html".into()));
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let payload = Payload::parse(r#"{"path": "x", "customer": {"id": 42}, "title": "November"}"#).unwrap();
        assert_eq!(payload.title(), "November");
    }

    #[test]
    fn a_bad_payload_says_why() {
        for (json, message) in [
            ("", "bad payload: EOF while parsing a value at line 1 column 0"),
            ("{}", "bad payload: missing field `path` at line 1 column 2"),
            (r#"{"path": "../x"}"#, r#"bad payload: "../x" leads out of /data at line 1 column 16"#),
        ] {
            assert_eq!(Payload::parse(json).unwrap_err(), message);
        }
    }

    #[test]
    fn a_report_is_a_plain_file_of_its_directory() {
        for file in ["../x.html", "a/b.html", ".x.html", "x.htm", "", "x\0.html", "é.html"] {
            let payload = Payload { path: Granted::path("x").unwrap(), title: None, file: Some(file.into()) };
            let message = payload.file_name(None).unwrap_err();
            assert_eq!(
                message,
                format!("the report cannot be called {file:?}: a name such as \"november-2026.html\" will do")
            );
        }
    }
}
