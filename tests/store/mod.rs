//! The test suite for every backend of the store, with a file for each verb.
//!
//! Start with [`Queue::fresh`]. `JOBQ_TEST_BACKEND` chooses the backend; `sqlite` is the default.
//! Tests that only concern SQLite are in `sqlite/`.

#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod cancel;
mod cancel_many;
mod changed;
mod claim;
mod close;
mod complete;
mod daemons;
mod enqueue;
mod fail;
mod give_back;
mod model;
mod moves;
mod parked_claim;
mod progress;
mod prune;
mod read;
mod release;
mod renew;
mod rescue;
mod retry;
mod retry_many;
mod select;
mod snooze;
mod sqlite;
mod text;

use std::any::Any;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use jobq::queue::memory::MemoryStore;
use jobq::queue::sqlite::{Durability, OpenMode, QueueOptions, SqliteStore};
use jobq::queue::{
    AttemptFailure, AttemptRecord, AttemptWrite, Backoff, Claim, Claimed, Digest, Due, Enqueued, Filter, Id, Job,
    JobRef, JobType, Key, LogLine, LogSource, NewJob, Next, Outcome, Payload, Receipt, RetryPolicies, RetryPolicy,
    Status, Store, StoreError, Timestamp, Want, WorkerName,
};

/// The environment variable that chooses the backend.
const BACKEND: &str = "JOBQ_TEST_BACKEND";

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// A new queue in the chosen backend.
pub(crate) struct Queue {
    pub(crate) store: Arc<dyn Store>,
    _kept: Box<dyn Any + Send + Sync>,
}

impl Queue {
    pub(crate) fn fresh() -> Self {
        match std::env::var(BACKEND).as_deref() {
            Ok("sqlite") | Err(_) => Self::sqlite(),
            Ok("memory") => Self { store: Arc::new(MemoryStore::new()), _kept: Box::new(()) },
            Ok(other) => panic!("there is no backend `{other}`"),
        }
    }

    fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options =
            QueueOptions { durability: Durability::Normal, ..QueueOptions::new(directory.path().join("queue.db")) };
        let store = SqliteStore::open(options, OpenMode::Create).unwrap();
        Self { store: Arc::new(store), _kept: Box::new(directory) }
    }

    /// Enqueues one job.
    pub(crate) async fn add(&self, job: NewJob) -> Id {
        match self.store.enqueue(vec![job]).await.unwrap().remove(0) {
            Enqueued::Added(id) => id,
            Enqueued::Held(id) => panic!("its key is held by {id}"),
        }
    }

    /// Claims up to `most` jobs of type `work` with leases of an hour.
    pub(crate) async fn claim(&self, most: usize) -> Vec<Claimed> {
        self.store.claim(claim("work", most)).await.unwrap().jobs
    }

    /// Enqueues a job of type `work` and claims it.
    pub(crate) async fn running(&self) -> Claimed {
        self.add(job("work")).await;
        self.claim(1).await.remove(0)
    }

    pub(crate) async fn job(&self, id: &Id) -> Job {
        self.store.find(id).await.unwrap().unwrap()
    }

    /// A reference that no job of this queue has.
    pub(crate) async fn no_job(&self) -> JobRef {
        let elsewhere = Self::fresh();
        elsewhere.store.enqueue((0..999).map(|_| job("work")).collect()).await.unwrap();
        elsewhere.all().await[0].reference
    }

    pub(crate) async fn all(&self) -> Vec<Job> {
        self.store.list(Filter { status: None, job_type: None, limit: usize::MAX }).await.unwrap()
    }

    pub(crate) async fn outcomes(&self, id: &Id) -> Vec<Outcome> {
        self.store.attempts(id).await.unwrap().iter().map(|attempt| attempt.outcome).collect()
    }

    /// Brings a job of type `work` into a state, and returns its latest lease.
    pub(crate) async fn in_state(&self, status: Status) -> Claimed {
        self.in_state_of_type("work", status).await
    }

    async fn in_state_of_type(&self, name: &str, status: Status) -> Claimed {
        let id = self.add(job(name)).await;
        let claimed = self.store.claim(claim(name, 1)).await.unwrap().jobs.remove(0);
        assert_eq!(claimed.id, id, "something else of type `{name}` was waiting");
        let end = receipt(&claimed);
        let recorded = match status {
            Status::Pending => self.store.give_back(end).await.unwrap(),
            Status::Running => AttemptWrite::Done,
            Status::Completed => self.store.complete(end, "done".into(), vec![]).await.unwrap(),
            Status::Failed => self.store.fail(end, failure(Next::Retry(Duration::ZERO))).await.unwrap(),
            Status::Dead => self.store.fail(end, failure(Next::Dead)).await.unwrap(),
            Status::Cancelled => {
                self.store.cancel(&id).await.unwrap();
                AttemptWrite::Done
            }
        };
        assert_eq!(recorded, AttemptWrite::Done);
        assert_eq!(self.job(&id).await.status, status);
        claimed
    }

    /// Jobs of other types, one in each state, that the test must not change.
    pub(crate) async fn other_jobs(&self) -> OtherJobs {
        self.other_jobs_in(&Status::ALL).await
    }

    pub(crate) async fn other_jobs_in(&self, states: &[Status]) -> OtherJobs {
        let mut ids = Vec::new();
        for &status in states {
            ids.push(self.in_state_of_type(&format!("other-{status}"), status).await.id);
        }
        OtherJobs { before: self.look_at(ids).await }
    }

    async fn look_at(&self, ids: Vec<Id>) -> Vec<Whole> {
        let mut whole = Vec::new();
        for id in ids {
            let (attempts, logs) = (self.store.attempts(&id).await.unwrap(), self.store.logs(&id, 0).await.unwrap());
            whole.push((self.job(&id).await, attempts, logs));
        }
        whole
    }
}

type Whole = (Job, Vec<AttemptRecord>, Vec<LogLine>);

/// Rows that must not change.
pub(crate) struct OtherJobs {
    before: Vec<Whole>,
}

impl OtherJobs {
    pub(crate) async fn are_unchanged(&self, queue: &Queue) {
        let ids = self.before.iter().map(|(job, ..)| job.id.clone()).collect();
        assert_eq!(queue.look_at(ids).await, self.before);
    }
}

pub(crate) fn job_type(name: &str) -> JobType {
    JobType::parse(name).unwrap()
}

pub(crate) fn job(name: &str) -> NewJob {
    NewJob::new(job_type(name), Payload::parse(r#"{"to":"ada"}"#.into(), 1 << 20).unwrap())
}

pub(crate) fn keyed(key: &str) -> NewJob {
    NewJob { key: Some(Key::parse(key).unwrap()), ..job("work") }
}

pub(crate) fn due_in(delay: Duration) -> NewJob {
    NewJob { due: Due::In(delay), ..job("work") }
}

pub(crate) fn want(name: &str, slots: usize) -> Want {
    Want { job_type: job_type(name), slots, ahead: 0 }
}

pub(crate) fn claim(name: &str, slots: usize) -> Claim {
    Claim { wants: vec![want(name, slots)], slots, lease: HOUR, worker: tester() }
}

/// The worker in the tests.
pub(crate) fn tester() -> WorkerName {
    WorkerName::new("tester")
}

/// Enqueues each job in a call of its own, concurrently.
pub(crate) async fn at_once(
    queue: &Queue,
    jobs: impl Iterator<Item = NewJob>,
) -> Vec<Result<Vec<Enqueued>, StoreError>> {
    let enqueue = |job| {
        let store = Arc::clone(&queue.store);
        tokio::spawn(async move { store.enqueue(vec![job]).await })
    };
    let mut answers = Vec::new();
    for call in jobs.map(enqueue).collect::<Vec<_>>() {
        answers.push(call.await.unwrap());
    }
    answers
}

/// The receipt of an attempt that took no time.
pub(crate) fn receipt(claimed: &Claimed) -> Receipt {
    Receipt {
        lease: claimed.lease.clone(),
        attempt: claimed.attempt,
        duration: Duration::ZERO,
        fuel: Some(1_000),
        peak_memory: Some(65_536),
        digest: Some(Digest([7; 32])),
        lines: vec![line("goodbye")],
    }
}

pub(crate) fn line(message: &str) -> LogLine {
    LogLine {
        attempt: 0,
        lease: 0,
        time: Timestamp::from_millis(1_700_000_000_000),
        source: LogSource::Log,
        level: Some("info"),
        message: message.into(),
    }
}

pub(crate) fn failure(next: Next) -> AttemptFailure {
    AttemptFailure { outcome: Outcome::Failed, error: "no luck".into(), next }
}

/// Three attempts without a pause.
pub(crate) fn policies() -> Arc<RetryPolicies> {
    let backoff = Backoff { base: Duration::ZERO, max: Duration::ZERO, jitter: 0.0 };
    Arc::new(RetryPolicies { default: RetryPolicy { backoff, ..RetryPolicy::default() }, ..RetryPolicies::default() })
}

/// Whether `instant` is between `earlier` and now.
pub(crate) fn is_since(instant: Timestamp, earlier: Timestamp) -> bool {
    (earlier..=Timestamp::now()).contains(&instant)
}

#[test]
fn the_queue_in_memory_passes_this_suite_too() {
    if std::env::var_os(BACKEND).is_some() {
        return;
    }
    let mut suite = Command::new(std::env::current_exe().unwrap());
    suite.env(BACKEND, "memory").args(["store::", "--skip", "store::sqlite::"]);
    let output = suite.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
async fn other_jobs_are_in_every_state() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let states: Vec<Status> = watch.before.iter().map(|(job, ..)| job.status).collect();
    assert_eq!(states, Status::ALL);
}
