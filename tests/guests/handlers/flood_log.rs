//! Proves that log lines are kept up to their limit and swallowed beyond: writes as many as the payload says.

use guests::log::{self, Level};
use guests::{Job, JobError};

guests::handler!(flood);

#[derive(serde::Deserialize)]
struct Payload {
    lines: u64,
    /// Length of each line; its number comes first.
    #[serde(default = "short")]
    bytes: usize,
}

fn short() -> usize {
    80
}

fn flood(job: Job) -> Result<String, JobError> {
    let Payload { lines, bytes } = guests::payload(&job)?;
    for number in 1..=lines {
        log::write(Level::Info, &format!("{number:.<bytes$}"));
    }
    Ok(lines.to_string())
}
