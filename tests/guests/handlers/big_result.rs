//! Proves the limit on results: returns a JSON string of as many bytes as the payload says, quotes included.

use guests::{Job, JobError};

guests::handler!(big);

#[derive(serde::Deserialize)]
struct Payload {
    bytes: usize,
    /// Return it as the text of this error instead.
    #[serde(default)]
    error: bool,
}

fn big(job: Job) -> Result<String, JobError> {
    let Payload { bytes, error } = guests::payload(&job)?;
    let text = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)));
    if error { Err(JobError::Retry(text)) } else { Ok(text) }
}
