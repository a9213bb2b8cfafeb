//! A pool inside an application: its own functions instead of plugins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jobq::queue::sqlite::{OpenMode, QueueOptions as Database, SqliteStore};
use jobq::queue::{Id, Job, JobType, NewJob, Outcome, Payload, RetryPolicy, Status, Store};
use jobq::sandbox::{FollowUp, Limits};
use jobq::worker::{JobError, JobTypeOptions, JobTypes, NativeHandlers, NativeJob, Pool, Setup, WorkerOptions};
use tokio_util::sync::CancellationToken;

struct House {
    _dir: tempfile::TempDir,
    store: Arc<SqliteStore>,
    pool: Pool,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(Database::new(dir.path().join("q.db")), OpenMode::Create).unwrap());
        let type_options = |timeout| {
            let limits = Limits { timeout, ..Limits::default() };
            Arc::new(JobTypeOptions {
                limits,
                policy: RetryPolicy { max_attempts: 1, ..RetryPolicy::default() },
                ..JobTypeOptions::default()
            })
        };
        let hasty = BTreeMap::from([(JobType::parse("forever").unwrap(), type_options(Duration::from_millis(50)))]);
        let job_types =
            JobTypes { default: type_options(Duration::from_secs(3600)), by_type: hasty, ..JobTypes::default() };
        let options = WorkerOptions { job_types, shutdown_grace: Duration::ZERO, ..WorkerOptions::default() };
        let handlers = NativeHandlers::new()
            .on("echo", |job: NativeJob| async move { Ok(job.call.payload.clone()) })
            .on("question", |_| async { Ok("x".parse::<u32>()?.to_string()) })
            .on("panic", |_| async { panic!("no paper in the tray") })
            .on("forever", |_| std::future::pending())
            .on("endless", endless)
            .on("fatal", |_| async { Err(JobError::Fatal("no such account".into())) })
            .on("parent", parent);
        let pool = Pool::start(Setup { store: store.clone(), handlers: Arc::new(handlers), options });
        Self { _dir: dir, store, pool }
    }

    async fn enqueue(&self, job_type: &str) -> Id {
        let payload = Payload::parse("[1]".into(), 10).unwrap();
        let job = NewJob::new(JobType::parse(job_type).unwrap(), payload);
        let id = job.id.clone();
        self.store.enqueue(vec![job]).await.unwrap();
        self.pool.waker().wake();
        id
    }

    async fn until(&self, id: &Id, wanted: impl Fn(&Job) -> bool) -> Job {
        loop {
            let job = self.store.find(id).await.unwrap().unwrap();
            if wanted(&job) {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Runs one job to its end.
    async fn run(&self, job_type: &str) -> (Job, Outcome) {
        let id = self.enqueue(job_type).await;
        let job = self.until(&id, |job| job.status.is_terminal()).await;
        let outcome = self.store.attempts(&id).await.unwrap()[0].outcome;
        (job, outcome)
    }
}

/// The claim that an idle pool leaves with the store must not outlive it: nobody would run what it takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_was_stopped_takes_no_job_that_is_added_later() {
    for round in 0..20 {
        let House { _dir, store, pool } = House::new();
        // At once, or after it has settled.
        tokio::time::sleep(Duration::from_millis(round % 4)).await;
        pool.stop(CancellationToken::new()).await;
        let job = NewJob::new(JobType::parse("echo").unwrap(), Payload::parse("1".into(), 10).unwrap());
        let id = job.id.clone();
        store.enqueue(vec![job]).await.unwrap();
        assert_eq!(store.find(&id).await.unwrap().unwrap().status, Status::Pending, "round {round}");
    }
}

async fn endless(job: NativeJob) -> Result<String, JobError> {
    job.progress(1, "begun");
    std::future::pending().await
}

async fn parent(job: NativeJob) -> Result<String, JobError> {
    job.log("one child");
    let child = FollowUp {
        job_type: "echo".into(),
        payload: "[2]".into(),
        priority: None,
        delay_ms: None,
        max_attempts: None,
        unique_key: None,
    };
    job.enqueue(child).await.map_err(|error| JobError::Fatal(format!("{error:?}")))
}

#[tokio::test]
async fn a_function_answers_for_its_type() {
    let house = House::new();
    let (job, outcome) = house.run("echo").await;
    assert_eq!((job.status, job.result.as_deref(), outcome), (Status::Completed, Some("[1]"), Outcome::Completed));
    let (job, outcome) = house.run("fatal").await;
    assert_eq!((job.status, job.error.as_deref(), outcome), (Status::Dead, Some("no such account"), Outcome::Failed));
    let (job, _) = house.run("question").await;
    assert_eq!(job.error.as_deref(), Some("invalid digit found in string"), "`?` is a failure with its text");
}

#[tokio::test]
async fn a_panic_and_a_timeout_end_the_attempt_and_not_the_pool() {
    let house = House::new();
    let (job, outcome) = house.run("panic").await;
    assert_eq!(outcome, Outcome::Trapped);
    assert!(job.error.unwrap().contains("no paper in the tray"));
    let (job, outcome) = house.run("forever").await;
    assert_eq!(outcome, Outcome::TimedOut);
    assert!(job.error.unwrap().contains("50ms"));
    assert_eq!(house.run("echo").await.1, Outcome::Completed);
}

#[tokio::test]
async fn follow_ups_and_log_lines_are_kept() {
    let house = House::new();
    let (job, _) = house.run("parent").await;
    let child = Id::parse(&job.result.unwrap()).unwrap();
    let child = house.until(&child, |job| job.status.is_terminal()).await;
    assert_eq!(child.result.as_deref(), Some("[2]"));
    assert_eq!(house.store.logs(&job.id, 0).await.unwrap()[0].message, "one child");
}

#[tokio::test]
async fn a_stop_gives_back_what_does_not_end() {
    let house = House::new();
    let id = house.enqueue("endless").await;
    house.until(&id, |job| job.progress.is_some()).await;
    let House { store, pool, .. } = house;
    pool.stop(CancellationToken::new()).await;
    let job = store.find(&id).await.unwrap().unwrap();
    assert_eq!((job.status, job.attempts), (Status::Pending, 0));
    assert_eq!(store.attempts(&id).await.unwrap()[0].outcome, Outcome::GivenBack);
}
