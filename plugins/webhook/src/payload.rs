//! The payload. Unknown fields are ignored, so that an application can add its own.

use std::collections::BTreeMap;
use std::time::Duration;

use jobq_guest::http::Url;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub(crate) struct Hook {
    pub(crate) url: Url,
    /// Sent byte for byte as it stands in the payload of the job.
    pub(crate) body: Box<RawValue>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default = "ten_seconds")]
    timeout_ms: u64,
}

impl Hook {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    pub(crate) fn sets(&self, header: &str) -> bool {
        self.headers.keys().any(|name| name.eq_ignore_ascii_case(header))
    }
}

fn ten_seconds() -> u64 {
    10_000
}
