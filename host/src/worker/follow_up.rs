//! Jobs that a running guest enqueues: checked at once, kept until its attempt completes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::Rules;
use crate::queue::{Due, Id, JobType, Key, Lease, NewJob, Payload, Store};
use crate::sandbox::{FollowUp, FollowUpError, FollowUps};

/// The follow-ups of one attempt.
pub(super) struct Outbox {
    store: Arc<dyn Store>,
    rules: Arc<Rules>,
    lease: Lease,
    jobs: Mutex<Vec<NewJob>>,
}

impl Outbox {
    pub(super) fn new(store: Arc<dyn Store>, rules: Arc<Rules>, lease: Lease) -> Self {
        Self { store, rules, lease, jobs: Mutex::default() }
    }

    /// Takes what has been enqueued.
    pub(super) fn take(&self) -> Vec<NewJob> {
        std::mem::take(&mut self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The id of the job that holds `key`: one of this attempt's own follow-ups or one in the queue.
    /// The job itself does not count, for its key is free again when its follow-ups come into being.
    async fn holder(&self, key: &Key) -> Option<Id> {
        let own = |jobs: &Vec<NewJob>| jobs.iter().find(|job| job.key.as_ref() == Some(key)).map(|job| job.id.clone());
        if let Some(id) = own(&self.jobs.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(id);
        }
        let holder = self.store.holder(key.as_str(), Some(self.lease.clone())).await;
        holder.inspect_err(|error| tracing::warn!("cannot look up the key of a follow-up: {error}")).unwrap_or(None)
    }
}

impl Rules {
    /// The job that a follow-up asks for, checked as one that an application enqueues would be.
    ///
    /// # Errors
    /// When its type is no name, its payload no JSON or too long, or an option out of range; the guest is told.
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
        let job = self.rules.follow_up(job)?;
        if let Some(key) = &job.key
            && let Some(holder) = self.holder(key).await
        {
            return Ok(holder.to_string());
        }
        let id = job.id.to_string();
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_the_queue_does_not_take_is_told_in_its_words() {
        let ask = |key: &str| {
            let unique_key = Some(key.to_owned());
            let (job_type, payload) = ("next".to_owned(), "{}".to_owned());
            let job = FollowUp { job_type, payload, priority: None, delay_ms: None, max_attempts: None, unique_key };
            Rules::default().follow_up(job)
        };
        for key in ["", "a\0b", &"x".repeat(Key::MAX_LEN + 1)] {
            let told = Key::parse(key).unwrap_err().to_string();
            assert!(matches!(ask(key), Err(FollowUpError::Invalid(error)) if error == told), "{key:?}");
        }
        assert_eq!(ask("k").unwrap().key, Key::parse("k").ok());
    }
}
