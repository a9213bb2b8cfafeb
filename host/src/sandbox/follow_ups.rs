//! Jobs that a running guest enqueues: the checks they pass, and the limits of one attempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::denials::table_of;
use super::grants::Grants;
use super::secrets::Secrets;

/// Follow-ups that one attempt may enqueue.
const MAX_JOBS: usize = 1_000;

/// Bytes of all follow-ups of one attempt together: their payloads, types and keys.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// A job that a guest enqueues. It must be created together with the completion of the guest's attempt, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// Its type, which has been granted.
    pub job_type: String,
    /// JSON text, not checked yet.
    pub payload: String,
    /// `None` means the priority of the type.
    pub priority: Option<i32>,
    /// Milliseconds after the completion of the attempt; `None` means 0.
    pub delay_ms: Option<u64>,
    /// `None` means the maximum of the type.
    pub max_attempts: Option<u32>,
    /// At most one unfinished job may have this key.
    pub unique_key: Option<String>,
}

/// Why a follow-up is refused. The guest gets this error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowUpError {
    /// There is no such type, or the payload isn't JSON.
    Invalid(String),
    /// The settings don't allow it.
    Denied(String),
}

/// Accepts the follow-ups of one attempt.
#[async_trait]
pub trait FollowUps: Send + Sync {
    /// Accepts one job, whose type has been granted, and returns its id.
    ///
    /// # Errors
    /// When the job is invalid; the guest may continue.
    async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError>;
}

/// Checks the follow-ups of a guest against its grants and limits before its [`FollowUps`] get them.
pub(super) struct FollowUpGate {
    job_type: String,
    granted: BTreeSet<String>,
    secrets: Secrets,
    accepted: Arc<dyn FollowUps>,
    jobs: usize,
    bytes: usize,
}

impl FollowUpGate {
    pub(super) fn new(job_type: String, grants: &Grants, accepted: Arc<dyn FollowUps>) -> Self {
        let (granted, secrets) = (grants.enqueue.clone(), grants.secrets.clone());
        Self { job_type, granted, secrets, accepted, jobs: 0, bytes: 0 }
    }

    /// The type of the guest's own job.
    pub(super) fn job_type(&self) -> &str {
        &self.job_type
    }

    pub(super) async fn enqueue(&mut self, job: FollowUp) -> Result<String, FollowUpError> {
        if !self.granted.contains(&job.job_type) {
            return Err(FollowUpError::Denied(self.not_granted(&job.job_type)));
        }
        let bytes = job.payload.len() + job.job_type.len() + job.unique_key.as_ref().map_or(0, String::len);
        if self.jobs == MAX_JOBS {
            return Err(FollowUpError::Denied(format!("one attempt may enqueue at most {MAX_JOBS} follow-up jobs")));
        }
        if self.bytes + bytes > MAX_BYTES {
            let limit = bytesize::ByteSize::b(MAX_BYTES as u64);
            return Err(FollowUpError::Denied(format!("the follow-up jobs of one attempt may have {limit} in total")));
        }
        if let Some(name) = [Some(&job.payload), job.unique_key.as_ref()]
            .into_iter()
            .flatten()
            .find_map(|text| self.secrets.found_in(text))
        {
            return Err(FollowUpError::Denied(format!(
                "the payload or key of the follow-up job contains the secret {name} and would store it; grant the secret \
                 to `{}` as well",
                job.job_type
            )));
        }
        let id = self.accepted.enqueue(job).await?;
        self.jobs += 1;
        self.bytes += bytes;
        Ok(id)
    }

    /// Names the line of the settings that would allow it.
    fn not_granted(&self, wanted: &str) -> String {
        let wanted: String = self.secrets.redact(wanted.to_owned()).chars().take(64).collect();
        let all: Vec<_> = self.granted.iter().chain([&wanted]).map(|name| format!("{name:?}")).collect();
        let (job_type, list, table) = (&self.job_type, all.join(", "), table_of(&self.job_type));
        format!("`{job_type}` may not enqueue `{wanted}`: it needs `enqueue = [{list}]` under `{table}` in jobq.toml")
    }
}
