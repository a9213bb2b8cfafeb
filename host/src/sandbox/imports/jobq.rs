//! The interfaces of `wit/`: `log`, `context` and `queue`.

use std::time::Instant;

use crate::sandbox::bindings::jobq::handler::context::Host as Context;
use crate::sandbox::bindings::jobq::handler::log::{Host as Log, Level};
use crate::sandbox::bindings::jobq::handler::queue::{EnqueueError, Host as Queue, NewJob};
use crate::sandbox::follow_ups::{FollowUp, FollowUpError};
use crate::sandbox::state::Host;

impl Log for Host {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        self.output.log(level, message);
        Ok(())
    }
}

impl Context for Host {
    fn remaining_ms(&mut self) -> wasmtime::Result<u64> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        Ok(left.as_millis().try_into().unwrap_or(u64::MAX))
    }

    fn is_cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.output.handle().is_cancelled())
    }

    fn progress(&mut self, percent: u8, message: String) -> wasmtime::Result<()> {
        self.output.progress(percent, message);
        Ok(())
    }
}

impl Queue for Host {
    async fn enqueue(&mut self, job: NewJob) -> wasmtime::Result<Result<String, EnqueueError>> {
        let enqueued = self.gate.enqueue(job.into()).await;
        if let Err(FollowUpError::Denied(reason)) = &enqueued {
            self.denials.deny_follow_up(reason);
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
            FollowUpError::Invalid(reason) => Self::Invalid(reason),
            FollowUpError::Denied(reason) => Self::Denied(reason),
        }
    }
}
