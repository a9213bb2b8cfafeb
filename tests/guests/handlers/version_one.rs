//! Proves hot reload, with its twin: answers "version one", after a sleep if the payload wants one.

use guests::{Job, JobError};

guests::handler!(version);

fn version(job: Job) -> Result<String, JobError> {
    guests::version("version one", &job)
}
