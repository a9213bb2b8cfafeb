//! Proves that a stack overflow ends the attempt, not the daemon.

use guests::{Job, JobError};

guests::handler!(overflow);

fn overflow(_job: Job) -> Result<String, JobError> {
    Ok(descend(0).to_string())
}

#[expect(unconditional_recursion, reason = "that is what this guest is for")]
#[inline(never)]
fn descend(depth: u64) -> u64 {
    std::hint::black_box(descend(depth + 1)) + depth
}
