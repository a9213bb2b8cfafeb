//! `jobq:handler/queue`: follow-up jobs.

use crate::sandbox::bindings::jobq::handler::queue::{EnqueueError, Host as Queue, NewJob};
use crate::sandbox::follow_ups::{FollowUp, FollowUpError};
use crate::sandbox::state::Host;

impl Queue for Host {
    async fn enqueue(&mut self, job: NewJob) -> wasmtime::Result<Result<String, EnqueueError>> {
        let enqueued = self.gate.enqueue(job.into()).await;
        if let Err(FollowUpError::Denied(why)) = &enqueued {
            self.denials.no_follow_up(why);
        }
        Ok(enqueued.map_err(EnqueueError::from))
    }
}

impl From<NewJob> for FollowUp {
    fn from(job: NewJob) -> Self {
        let NewJob { job_type, payload, priority, delay_ms, max_attempts, unique_key } = job;
        Self { job_type, payload, priority, delay_ms, max_attempts, unique_key }
    }
}

impl From<FollowUpError> for EnqueueError {
    fn from(error: FollowUpError) -> Self {
        match error {
            FollowUpError::Invalid(why) => Self::Invalid(why),
            FollowUpError::Denied(why) => Self::Denied(why),
        }
    }
}
