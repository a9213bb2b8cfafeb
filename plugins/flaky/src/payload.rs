//! The payload. Unknown fields are ignored, so that an application can add its own.

use std::time::Duration;

#[derive(Debug, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Payload {
    /// The first so many attempts fail.
    pub(crate) fail_times: u32,
    /// What comes after them.
    pub(crate) then: Then,
    /// The message of whatever it answers, panics included.
    pub(crate) message: Option<String>,
    /// Milliseconds of `retry_after`, `sleep` and `snooze`.
    ms: u64,
}

/// What becomes of an attempt that does not fail.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Then {
    /// It completes.
    #[default]
    Ok,
    /// It works for `ms`, with progress, and completes.
    Sleep,
    /// It snoozes until its job is `ms` old, and completes.
    Snooze,
    /// The job is dead at once.
    Fatal,
    /// It fails and asks for another attempt after `ms`.
    RetryAfter,
    /// It panics.
    Panic,
    /// It computes for ever: its fuel or its time limit ends it.
    Loop,
    /// It takes all the memory there is: its memory limit ends it.
    Memory,
}

impl Payload {
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_millis(self.ms)
    }

    pub(crate) fn message_or(&self, default: &str) -> String {
        self.message.clone().unwrap_or_else(|| default.into())
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload { fail_times: 0, then: Then::Ok, message: None, ms: 1_000 }
    }
}
