//! The value types of the queue: ids, types, payloads, timestamps, leases. Valid by construction.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

/// An instant in milliseconds since the Unix epoch, as in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest due time, in September 2001. Smaller numbers are seconds taken for milliseconds.
    pub const EARLIEST_DUE: Self = Self(1_000_000_000_000);

    /// The wall clock of this machine.
    pub fn now() -> Self {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(millis(elapsed))
    }

    /// From milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This instant plus `duration`, saturating.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// This instant minus `duration`, saturating.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds, or the number if that format cannot express it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{}", self.0),
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The public id of a job: a UUID version 7, or any text that its creator chose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Arc<str>);

/// Not a valid job id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a job id: expected 1 to 255 characters without NUL")]
pub struct ParseIdError(String);

impl Id {
    /// A new UUID version 7: ordered by time, so that the index on ids grows at its end.
    pub fn generate() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// Checks an id from user input.
    ///
    /// # Errors
    /// When it is empty, longer than 255 bytes, or holds a NUL.
    pub fn parse(text: &str) -> Result<Self, ParseIdError> {
        if text.is_empty() || text.len() > 255 || text.contains('\0') {
            return Err(ParseIdError(text.chars().take(40).collect()));
        }
        Ok(Self(text.into()))
    }

    /// An id from the table, unchecked.
    pub fn stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a job type: `[A-Za-z0-9_.-]{1,64}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobType(Arc<str>);

/// Not a valid job type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a job type: {expected}", expected = JobType::EXPECTED)]
pub struct TypeError(String);

impl JobType {
    /// The rule, for messages.
    pub const EXPECTED: &'static str = "expected 1 to 64 of the characters A-Z a-z 0-9 _ . -";

    /// The rule as a regular expression.
    pub const PATTERN: &'static str = "^[A-Za-z0-9_.-]{1,64}$";

    /// Checks the name.
    ///
    /// # Errors
    /// When it is empty, too long, or has another character than `A-Za-z0-9_.-`.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            return Err(TypeError(text.chars().take(80).collect()));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for JobType {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A unique key: at most one unfinished job of a queue holds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// Not a valid key. The text is not repeated, because it may be long or secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not a valid key: expected 1 to {max} bytes without NUL", max = Key::MAX_LEN)]
pub struct KeyError(());

impl Key {
    /// The most bytes.
    pub const MAX_LEN: usize = 1024;

    /// Checks the text.
    ///
    /// # Errors
    /// When it is empty, longer than [`MAX_LEN`](Self::MAX_LEN) or holds a NUL.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() || text.len() > Self::MAX_LEN || text.contains('\0') {
            return Err(KeyError(()));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// JSON text, kept byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(String);

/// Not a valid payload.
#[derive(Debug, Error)]
pub enum PayloadError {
    /// Not JSON (RFC 8259).
    #[error("the payload is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// JSON nested too deeply.
    #[error("the payload nests deeper than {max} levels")]
    TooDeep {
        /// The most levels allowed.
        max: usize,
    },
    /// Larger than `queue.max_payload`.
    #[error("the payload has {len} bytes, more than the {max} that `queue.max_payload` allows")]
    TooLong {
        /// Bytes given.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
}

impl Payload {
    /// The limit of SQLite's JSON parser, checked here for a clearer message.
    pub const MAX_DEPTH: usize = 1000;

    /// Checks that `text` is one JSON value of at most `max` bytes.
    ///
    /// # Errors
    /// When it is too long, nested too deeply, or not JSON.
    pub fn parse(text: String, max: usize) -> Result<Self, PayloadError> {
        if text.len() > max {
            return Err(PayloadError::TooLong { len: text.len(), max });
        }
        serde_json::from_str::<serde::de::IgnoredAny>(&text).map_err(PayloadError::NotJson)?;
        if depth(&text) > Self::MAX_DEPTH {
            return Err(PayloadError::TooDeep { max: Self::MAX_DEPTH });
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// The nesting depth of valid JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// The priority of a job: higher is claimed first.
pub type Priority = i16;

/// When a new job may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This long after it is stored; zero is at once.
    In(Duration),
    /// Not before this instant.
    At(Timestamp),
}

impl Due {
    /// The due time of a job that is stored at `now`.
    pub(super) fn instant(self, now: Timestamp) -> Timestamp {
        match self {
            Self::In(delay) => now.after(delay),
            Self::At(instant) => instant.max(Timestamp::EARLIEST_DUE),
        }
    }
}

/// A job to be enqueued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its public id.
    pub id: Id,
    /// Which handler runs it.
    pub job_type: JobType,
    /// The input of its handler.
    pub payload: Payload,
    /// Higher is claimed first.
    pub priority: Priority,
    /// When it may run.
    pub due: Due,
    /// Attempts before it is dead; `None`: the limit of its type at the time it fails. At least 1.
    pub max_attempts: Option<u32>,
    /// Time limit of one attempt; `None`: the limit of its type.
    pub timeout: Option<Duration>,
    /// At most one unfinished job of the queue holds a key.
    pub key: Option<Key>,
}

impl NewJob {
    /// A job that is due at once, with the limits of its type.
    pub fn new(job_type: JobType, payload: Payload) -> Self {
        Self {
            id: Id::generate(),
            job_type,
            payload,
            priority: 0,
            due: Due::In(Duration::ZERO),
            max_attempts: None,
            timeout: None,
            key: None,
        }
    }

    /// Its own timeout in whole milliseconds, at least one.
    pub(super) fn timeout_millis(&self) -> Option<i64> {
        self.timeout.map(|timeout| millis(timeout).max(1))
    }
}

/// A job's row, opaque outside the backends. Ordered by insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobRef(i64);

impl JobRef {
    /// For backends: the row with this number.
    pub const fn from_seq(seq: i64) -> Self {
        Self(seq)
    }

    /// For backends: its number.
    pub const fn seq(self) -> i64 {
        self.0
    }
}

/// The name of a worker in the `worker` column. A daemon takes a new name at each start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName(Arc<str>);

impl WorkerName {
    /// Any text that no other worker has.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A worker's lease on one attempt of one job. Every write of a worker carries all three fields.
///
/// The token only grows, so a worker that was presumed dead can be told from the one that took over
/// (Kleppmann, "How to do distributed locking", 2016: fencing tokens). The name tells workers apart even if a row, and with it
/// the token, was restored from a backup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job.
    pub job: JobRef,
    /// The fencing token.
    pub token: i64,
    /// The worker that holds it.
    pub worker: WorkerName,
}

/// SHA-256 of the `.wasm` that ran an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_as_rfc_3339_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_700_000_000_007).to_string(), "2023-11-14T22:13:20.007Z");
    }

    #[test]
    fn timestamps_saturate() {
        assert_eq!(Timestamp::from_millis(i64::MAX).after(Duration::MAX).as_millis(), i64::MAX);
        assert_eq!(Timestamp::from_millis(0).since(Timestamp::from_millis(5)), Duration::ZERO);
    }

    #[test]
    fn payloads_keep_their_bytes() {
        for text in [r#" {"n": 12345678901234567890} "#, r#""\u0000 \ud800 🦀 \u202e""#, "[]"] {
            assert_eq!(Payload::parse(text.to_owned(), 1024).unwrap().as_str(), text);
        }
    }

    #[test]
    fn payloads_that_are_not_json_are_refused() {
        for text in ["", "{", "{'a':1}", "\"\0\"", "1 2", "NaN"] {
            assert!(matches!(Payload::parse(text.to_owned(), 1024), Err(PayloadError::NotJson(_))), "{text:?}");
        }
    }

    #[test]
    fn payloads_have_a_maximum_depth_and_length() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(Payload::parse(nested(Payload::MAX_DEPTH), 1 << 20).is_ok());
        assert!(matches!(Payload::parse(nested(Payload::MAX_DEPTH + 1), 1 << 20), Err(PayloadError::TooDeep { .. })));
        assert!(matches!(Payload::parse("[1]".into(), 2), Err(PayloadError::TooLong { len: 3, max: 2 })));
        assert!(Payload::parse(format!("\"{}\"", "[".repeat(5000)), 1 << 20).is_ok());
    }

    #[test]
    fn keys_are_checked() {
        for good in ["k", " ", "🦀", &"x".repeat(Key::MAX_LEN)] {
            assert_eq!(Key::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a\0", &"x".repeat(Key::MAX_LEN + 1)] {
            assert!(Key::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn job_types_are_checked() {
        assert!(JobType::parse("send_email-2.v1").is_ok());
        for bad in ["", "a b", "é", "a/b", &"x".repeat(65)] {
            assert!(JobType::parse(bad).is_err(), "{bad:?}");
        }
    }
}
