//! Proves that one host call cannot eat the host's memory: asks for 10 GB of random bytes at once.

use guests::{Job, JobError};
use wasip2::random::random;

guests::handler!(flood);

fn flood(_job: Job) -> Result<String, JobError> {
    Ok(random::get_random_bytes(10_000_000_000).len().to_string())
}
