//! What a handler can ask for, as the host that runs it and the fake of the tests both offer it.

use std::time::Duration;

use crate::follow_up::{EnqueueError, FollowUp};

pub(crate) trait Host {
    fn remaining(&self) -> Duration;

    fn is_cancelled(&self) -> bool;

    fn progress(&self, percent: u8, message: &str);

    fn enqueue(&self, job: FollowUp) -> Result<String, EnqueueError>;
}

/// One attempt of one job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) job_type: String,
    pub(crate) payload: String,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
}
