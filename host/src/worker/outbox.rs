//! The jobs that a running guest enqueues: checked when it asks, added to the queue when its attempt completes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::JobTypes;
use crate::queue::{Due, Id, JobType, Key, Lease, NewJob, Payload, Store};
use crate::sandbox::{FollowUp, FollowUpError, FollowUps};

/// The follow-up jobs of one attempt.
pub(super) struct Outbox {
    store: Arc<dyn Store>,
    job_types: Arc<JobTypes>,
    lease: Lease,
    jobs: Mutex<Vec<NewJob>>,
}

impl Outbox {
    pub(super) fn new(store: Arc<dyn Store>, job_types: Arc<JobTypes>, lease: Lease) -> Self {
        Self { store, job_types, lease, jobs: Mutex::default() }
    }

    /// Takes the jobs enqueued so far.
    pub(super) fn take(&self) -> Vec<NewJob> {
        std::mem::take(&mut self.jobs.lock())
    }

    /// The id of the unfinished job with this key: another follow-up of this attempt, or one in the queue.
    /// The running job doesn't count, because its key is free once its follow-ups are added.
    async fn holder(&self, key: &Key) -> Option<Id> {
        let own = |jobs: &Vec<NewJob>| jobs.iter().find(|job| job.key.as_ref() == Some(key)).map(|job| job.id.clone());
        if let Some(id) = own(&self.jobs.lock()) {
            return Some(id);
        }
        let holder = self.store.holder(key.as_str(), Some(self.lease.clone())).await;
        holder.inspect_err(|error| tracing::warn!("cannot look up the key of a follow-up: {error}")).unwrap_or(None)
    }
}

impl JobTypes {
    /// The job for a follow-up, checked like a job that an application enqueues.
    ///
    /// # Errors
    /// When the type is not a valid name, the payload is not JSON or too long, or an option is out of range.
    pub fn follow_up(&self, job: FollowUp) -> Result<NewJob, FollowUpError> {
        let invalid = |error: &dyn std::fmt::Display| FollowUpError::Invalid(error.to_string());
        let job_type = JobType::parse(&job.job_type).map_err(|error| invalid(&error))?;
        let payload = Payload::parse(job.payload, self.max_payload).map_err(|error| invalid(&error))?;
        let priority = match job.priority {
            None => self.of(job_type.as_str()).priority,
            Some(asked) => asked.try_into().map_err(|_| {
                FollowUpError::Invalid(format!("priority {asked} is out of range: expected -32768 to 32767"))
            })?,
        };
        if job.max_attempts == Some(0) {
            return Err(FollowUpError::Invalid("max-attempts is 0: expected at least 1".into()));
        }
        let key = job.unique_key.as_deref().map(Key::parse).transpose().map_err(|error| invalid(&error))?;
        let due = Due::In(Duration::from_millis(job.delay_ms.unwrap_or(0)));
        Ok(NewJob { priority, due, max_attempts: job.max_attempts, key, ..NewJob::new(job_type, payload) })
    }
}

#[async_trait]
impl FollowUps for Outbox {
    async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        let job = self.job_types.follow_up(job)?;
        if let Some(key) = &job.key
            && let Some(holder) = self.holder(key).await
        {
            return Ok(holder.to_string());
        }
        let id = job.id.to_string();
        self.jobs.lock().push(job);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_key_is_refused_with_the_message_of_the_queue() {
        let follow_up = |key: &str| {
            let unique_key = Some(key.to_owned());
            let (job_type, payload) = ("next".to_owned(), "{}".to_owned());
            let job = FollowUp { job_type, payload, priority: None, delay_ms: None, max_attempts: None, unique_key };
            JobTypes::default().follow_up(job)
        };
        for key in ["", "a\0b", &"x".repeat(Key::MAX_LEN + 1)] {
            let message = Key::parse(key).unwrap_err().to_string();
            assert!(matches!(follow_up(key), Err(FollowUpError::Invalid(error)) if error == message), "{key:?}");
        }
        assert_eq!(follow_up("k").unwrap().key, Key::parse("k").ok());
    }
}
