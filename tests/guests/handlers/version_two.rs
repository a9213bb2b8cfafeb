//! Proves hot reload, with its twin: answers "version two", after a sleep if the payload wants one.

use guests::{Job, JobError};

guests::handler!(version);

fn version(job: Job) -> Result<String, JobError> {
    guests::version("version two", &job)
}
