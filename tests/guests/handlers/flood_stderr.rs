//! Proves that stderr is kept up to its limit and swallowed beyond: writes as many bytes as the payload says.

use std::io::Write;

use guests::{Job, JobError};

guests::handler!(flood);

const LINE: &str = "All work and no play makes a queue a dull queue, and a log a long one.\n";

#[derive(serde::Deserialize)]
struct Payload {
    bytes: usize,
}

fn flood(job: Job) -> Result<String, JobError> {
    let Payload { bytes } = guests::payload(&job)?;
    let mut stderr = std::io::stderr().lock();
    let lines = LINE.repeat(1_000);
    let mut left = bytes;
    while left > 0 {
        let chunk = &lines.as_bytes()[..lines.len().min(left)];
        stderr.write_all(chunk).map_err(|error| JobError::Fatal(format!("{left} bytes left: {error}")))?;
        left -= chunk.len();
    }
    stderr.flush().map_err(|error| JobError::Fatal(error.to_string()))?;
    Ok(bytes.to_string())
}
