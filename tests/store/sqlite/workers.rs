//! Worker files: a death is proved at once, and attempts that did not start don't count.
//!
//! A dropped store releases its locks like a killed process. The tests of the daemon kill real ones.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use jobq::queue::sqlite::{OpenMode, QueueOptions, SqliteStore, TableName};
use jobq::queue::{AttemptWrite, Claim, Claimed, Daemon, NewJob, Rescued, Status, Store, Timestamp, WorkerName};

use super::File;
use crate::store::{DAY, claim, job, policies, receipt};

impl File {
    /// The files beside the database, without SQLite's own.
    fn beside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path().parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.contains("-jobq-")).collect();
        names.sort();
        names
    }
}

/// Registers a worker and lets it claim `jobs` jobs, with leases of an hour.
async fn working(store: &SqliteStore, name: &str, jobs: usize) -> Vec<Claimed> {
    let worker = WorkerName::new(name);
    store.register(&worker).await.unwrap();
    let mut claimed = Vec::new();
    for _ in 0..jobs {
        store.enqueue(vec![NewJob { max_attempts: Some(2), ..job("work") }]).await.unwrap();
        let claim = Claim { worker: worker.clone(), ..claim("work", 1) };
        claimed.extend(store.claim(claim).await.unwrap().jobs);
    }
    assert_eq!(claimed.len(), jobs);
    claimed
}

async fn rescue(store: &SqliteStore, limit: usize) -> Vec<Rescued> {
    store.rescue(policies(), Some(DAY), limit).await.unwrap()
}

fn report(worker: &str) -> Daemon {
    let now = Timestamp::now();
    Daemon { worker: worker.into(), pid: 1, started_at: now, seen_at: now, slots: 1, busy: 0, plugins: vec![] }
}

#[tokio::test]
async fn the_jobs_of_a_dead_worker_are_rescued_before_their_lease_expires() {
    let file = File::new();
    let (dying, living) = (file.store(), file.store());
    let jobs = working(&dying, "dying", 3).await;
    let others = working(&living, "living", 1).await;
    dying.announce(report("dying")).await.unwrap();
    dying.started(&jobs[0].lease);
    dying.started(&jobs[2].lease);
    for _ in 0..3 {
        assert_eq!(rescue(&living, 9).await, [], "both live");
    }
    drop(dying);
    let ends: Vec<Status> = rescue(&living, 9).await.into_iter().map(|job| job.status).collect();
    assert_eq!(ends, [Status::Failed, Status::Pending, Status::Failed]);
    let lost = living.find(&jobs[0].id).await.unwrap().unwrap();
    assert_eq!((lost.attempts, lost.error.as_deref()), (1, Some("lost: worker `dying` died")));
    let waited = living.find(&jobs[1].id).await.unwrap().unwrap();
    assert_eq!((waited.attempts, waited.error), (0, None));
    assert_eq!(living.attempts(&jobs[1].id).await.unwrap(), []);
    assert_eq!(living.find(&others[0].id).await.unwrap().unwrap().status, Status::Running);
    assert_eq!(living.daemons().await.unwrap(), []);
    assert_eq!(file.beside(), ["queue.db-jobq-jobs-living"]);
    assert_eq!(rescue(&living, 9).await, []);
}

#[tokio::test]
async fn a_dead_worker_with_many_jobs_is_rescued_in_batches() {
    let file = File::new();
    let (dying, living) = (file.store(), file.store());
    let jobs = working(&dying, "dying", 5).await;
    drop(dying);
    for (taken, left) in [(2, 1), (2, 1), (1, 0)] {
        assert_eq!(rescue(&living, 2).await.len(), taken);
        assert_eq!(file.beside().len(), left, "it goes with its last job");
    }
    for job in jobs {
        assert_eq!(living.find(&job.id).await.unwrap().unwrap().status, Status::Pending);
    }
}

#[tokio::test]
async fn only_one_of_two_stores_rescues_a_dead_worker() {
    let file = File::new();
    let (dying, one, two) = (file.store(), file.store(), file.store());
    let jobs = working(&dying, "dying", 40).await;
    jobs.iter().for_each(|job| dying.started(&job.lease));
    drop(dying);
    let clear = |store: Arc<SqliteStore>| {
        tokio::spawn(async move {
            let mut taken = 0;
            for _ in 0..200 {
                taken += rescue(&store, 3).await.len();
            }
            taken
        })
    };
    let (one_task, two_task) = (clear(one.clone()), clear(two));
    assert_eq!(one_task.await.unwrap() + two_task.await.unwrap(), 40);
    for job in jobs {
        assert_eq!(one.attempts(&job.id).await.unwrap().len(), 1);
    }
    assert_eq!(rescue(&one, 1).await, []);
    assert_eq!(file.beside(), [""; 0]);
}

#[tokio::test]
async fn a_rescue_without_work_takes_no_write_lock() {
    let file = File::new();
    let impatient = QueueOptions { busy_timeout: Some(Duration::ZERO), ..file.options() };
    let store = SqliteStore::open(impatient, OpenMode::Create).unwrap();
    working(&store, "living", 1).await;
    let foreign = file.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE; INSERT INTO jobs (type) VALUES ('foreign')").unwrap();
    assert_eq!(rescue(&store, 9).await, []);
    foreign.execute_batch("COMMIT").unwrap();
}

#[tokio::test]
async fn retire_removes_the_worker_file_unless_a_job_is_running() {
    let file = File::new();
    let (leaving, living) = (file.store(), file.store());
    let name = WorkerName::new("leaving");
    let jobs = working(&leaving, "leaving", 1).await;
    leaving.retire(&name).await.unwrap();
    assert_eq!(rescue(&living, 9).await, [], "its process has not ended");
    assert_eq!(file.beside().len(), 1);
    assert_eq!(leaving.complete(receipt(&jobs[0]), "done".into(), vec![]).await.unwrap(), AttemptWrite::Done);
    leaving.retire(&name).await.unwrap();
    assert_eq!(file.beside(), [""; 0]);

    working(&leaving, "leaving", 1).await;
    leaving.retire(&name).await.unwrap();
    drop(leaving);
    assert_eq!(rescue(&living, 9).await.len(), 1);
    assert_eq!(file.beside(), [""; 0]);
}

#[tokio::test]
async fn close_keeps_the_files_of_workers_that_hold_jobs() {
    let file = File::new();
    let (closing, living) = (file.store(), file.store());
    working(&closing, "idle", 0).await;
    working(&closing, "busy", 1).await;
    closing.close().await;
    assert_eq!(file.beside(), ["queue.db-jobq-jobs-busy"]);
    assert_eq!(rescue(&living, 9).await.len(), 1);
    assert_eq!(file.beside(), [""; 0]);
}

#[tokio::test]
async fn the_file_of_a_crashed_idle_worker_is_removed() {
    let file = File::new();
    let (silent, told, living) = (file.store(), file.store(), file.store());
    working(&silent, "silent", 0).await;
    working(&told, "told", 0).await;
    told.announce(report("told")).await.unwrap();
    drop((silent, told));
    assert_eq!(rescue(&living, 9).await, []);
    assert_eq!(file.beside(), [""; 0]);
    assert_eq!(living.daemons().await.unwrap(), []);
}

#[tokio::test]
async fn a_file_of_another_boot_proves_nothing_and_is_removed_once_its_worker_is_silent() {
    let file = File::new();
    let (elsewhere, living) = (file.store(), file.store());
    let jobs = working(&elsewhere, "elsewhere", 1).await;
    elsewhere.announce(report("elsewhere")).await.unwrap();
    let path = file.path().with_file_name("queue.db-jobq-jobs-elsewhere");
    let text = fs::read(&path).unwrap();
    let boot = 1 + text.windows(6).position(|bytes| bytes == b"\nboot ").unwrap();
    drop(elsewhere);
    let mut other = text.clone();
    other[boot + 5] = b'x';
    fs::write(&path, other).unwrap();
    assert_eq!(rescue(&living, 9).await, [], "its lease holds");

    let expire = "UPDATE jobs SET lease_until = 0 WHERE status = 'running'";
    file.foreign().execute(expire, []).unwrap();
    assert_eq!(rescue(&living, 9).await[0].status, Status::Failed, "that it never started is not proved");
    assert_eq!(living.attempts(&jobs[0].id).await.unwrap().len(), 1);
    assert_eq!(rescue(&living, 9).await, []);
    assert_eq!(file.beside().len(), 1, "it was heard of just now");
    file.foreign().execute("UPDATE jobs__daemons SET seen_at = 0", []).unwrap();
    assert_eq!(rescue(&living, 9).await, []);
    assert_eq!((file.beside(), living.daemons().await.unwrap()), (vec![], vec![]));
}

#[tokio::test]
async fn a_queue_ignores_the_workers_of_other_queues_in_the_file() {
    let file = File::new();
    let mails = QueueOptions { table: TableName::parse("mails").unwrap(), ..file.options() };
    let mails = || SqliteStore::open(mails.clone(), OpenMode::Create).unwrap();
    let (dying, jobs) = (mails(), file.store());
    working(&dying, "dying", 1).await;
    drop(dying);
    assert_eq!(rescue(&jobs, 9).await, []);
    assert_eq!(file.beside(), ["queue.db-jobq-mails-dying"]);
    assert_eq!(rescue(&mails(), 9).await.len(), 1);
}

#[tokio::test]
async fn without_a_worker_file_the_lease_expires() {
    let file = File::new();
    let (dying, living) = (file.store(), file.store());
    fs::create_dir(file.path().with_file_name("queue.db-jobq-jobs-dying")).unwrap();
    let jobs = working(&dying, "dying", 1).await;
    dying.started(&jobs[0].lease);
    dying.ended(&jobs[0].lease);
    drop(dying);
    assert_eq!(rescue(&living, 9).await, []);
    file.foreign().execute("UPDATE jobs SET lease_until = 0", []).unwrap();
    assert_eq!(rescue(&living, 9).await[0].status, Status::Failed);
}
