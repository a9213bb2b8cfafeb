//! Proves that follow-up jobs come into being with the completion of their parent, or not at all.

use guests::queue::{self, EnqueueError, NewJob};
use guests::{Job, JobError};

guests::handler!(follow);

#[derive(serde::Deserialize)]
struct Payload {
    jobs: Vec<FollowUp>,
    /// Enqueue the whole list so many times.
    #[serde(default = "once")]
    count: u32,
    #[serde(default)]
    then: Then,
}

#[derive(serde::Deserialize)]
struct FollowUp {
    #[serde(rename = "type")]
    job_type: String,
    /// The text as it stands here is the payload of the follow-up.
    #[serde(default = "empty_object")]
    payload: String,
    priority: Option<i32>,
    delay_ms: Option<u64>,
    max_attempts: Option<u32>,
    unique_key: Option<String>,
}

/// How the parent ends.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Then {
    #[default]
    Ok,
    Retry,
    Fatal,
    Snooze,
    Panic,
}

/// What became of one follow-up.
#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Fate {
    Id(String),
    Invalid(String),
    Denied(String),
}

fn once() -> u32 {
    1
}

fn empty_object() -> String {
    "{}".into()
}

fn follow(job: Job) -> Result<String, JobError> {
    let Payload { jobs, count, then } = guests::payload(&job)?;
    let mut fates = Vec::new();
    for _ in 0..count {
        fates.extend(jobs.iter().map(enqueue));
    }
    match then {
        Then::Ok => guests::result(&fates),
        Then::Retry => Err(JobError::Retry("changed my mind".into())),
        Then::Fatal => Err(JobError::Fatal("changed my mind".into())),
        Then::Snooze => Err(JobError::Snooze(100)),
        Then::Panic => panic!("changed my mind"),
    }
}

fn enqueue(job: &FollowUp) -> Fate {
    let new = NewJob {
        job_type: job.job_type.clone(),
        payload: job.payload.clone(),
        priority: job.priority,
        delay_ms: job.delay_ms,
        max_attempts: job.max_attempts,
        unique_key: job.unique_key.clone(),
    };
    match queue::enqueue(&new) {
        Ok(id) => Fate::Id(id),
        Err(EnqueueError::Invalid(reason)) => Fate::Invalid(reason),
        Err(EnqueueError::Denied(reason)) => Fate::Denied(reason),
    }
}
