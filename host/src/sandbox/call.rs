//! What a guest is called with, and how.

use super::bindings::jobq::handler::types::Job;

/// How a plugin is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Through its `handle` function.
    Handler,
    /// As a command-line program: payload on stdin, result on stdout.
    Program,
}

/// One attempt of one job, as the guest sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The id of the job, the same in every attempt.
    pub id: String,
    /// The job type.
    pub job_type: String,
    /// The JSON text, byte for byte.
    pub payload: String,
    /// The number of this attempt; the first is 1.
    pub attempt: u32,
    /// The number of attempts after which the job is dead.
    pub max_attempts: u32,
}

impl From<Call> for Job {
    fn from(call: Call) -> Self {
        let Call { id, job_type, payload, attempt, max_attempts } = call;
        Self { id, job_type, payload, attempt, max_attempts }
    }
}
