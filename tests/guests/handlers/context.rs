//! Proves every import of the contract in one go, and that a guest is told the truth about its job.

use guests::log::{self, Level};
use guests::{Job, JobError, context};

guests::handler!(look_around);

/// What the job and the host said.
#[derive(serde::Serialize)]
struct Seen {
    id: String,
    job_type: String,
    payload: String,
    attempt: u32,
    max_attempts: u32,
    remaining_ms: u64,
    is_cancelled: bool,
}

fn look_around(job: Job) -> Result<String, JobError> {
    log::write(Level::Debug, "a debug line");
    log::write(Level::Info, "an info line");
    log::write(Level::Warn, "a warning");
    log::write(Level::Error, "an error line");
    println!("a line on stdout");
    eprintln!("a line on stderr");
    context::progress(50, "halfway");
    let seen = Seen {
        id: job.id,
        job_type: job.job_type,
        payload: job.payload,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        remaining_ms: context::remaining_ms(),
        is_cancelled: context::is_cancelled(),
    };
    context::progress(200, "more than all of it");
    guests::result(&seen)
}
