//! Proves that payload and result pass byte for byte: returns the payload as it came.

use guests::{Job, JobError};

guests::handler!(echo);

fn echo(job: Job) -> Result<String, JobError> {
    Ok(job.payload)
}
