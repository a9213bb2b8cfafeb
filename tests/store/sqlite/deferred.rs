//! Deferred jobs: those that are not due have an index of their own.

use std::sync::Arc;
use std::time::Duration;

use jobq::queue::sqlite::SqliteStore;
use jobq::queue::{Claims, Due, Filter, NewJob, Next, Selection, Status, Store, Timestamp};
use rusqlite::Connection;

use super::File;
use crate::store::{DAY, HOUR, claim, due_in, failure, job, policies, receipt};

async fn claimed(store: &Arc<SqliteStore>, slots: usize) -> Claims {
    store.claim(claim("work", slots)).await.unwrap()
}

fn count(foreign: &Connection, what: &str) -> i64 {
    foreign.query_row(&format!("SELECT count(*) FROM jobs WHERE {what}"), [], |row| row.get(0)).unwrap()
}

/// `count` rows of type `work`, each with its own priority, due in an hour.
fn add_foreign(foreign: &Connection, rows: u32) {
    let insert = "INSERT INTO jobs (type, priority, scheduled_at)
                  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT 'work', i, ?2 FROM n";
    foreign.execute(insert, (rows, Timestamp::now().after(HOUR).as_millis())).unwrap();
}

#[tokio::test]
async fn exactly_jobs_due_later_are_deferred() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    let deferred = || count(&foreign, "deferred");
    store.enqueue(vec![job("work"), due_in(Duration::ZERO)]).await.unwrap();
    let past = NewJob { due: Due::At(Timestamp::from_millis(0)), ..job("work") };
    store.enqueue(vec![past, due_in(DAY), due_in(DAY)]).await.unwrap();
    assert_eq!(deferred(), 2);
    let jobs = claimed(&store, 9).await.jobs;
    assert_eq!(jobs.len(), 3);
    store.fail(receipt(&jobs[0]), failure(Next::Retry(Duration::ZERO))).await.unwrap();
    assert_eq!(deferred(), 2);
    store.fail(receipt(&jobs[1]), failure(Next::Retry(DAY))).await.unwrap();
    store.snooze(receipt(&jobs[2]), DAY).await.unwrap();
    assert_eq!(deferred(), 4);
    store.retry(&jobs[1].id, policies()).await.unwrap();
    assert_eq!(deferred(), 3);
    let jobs = claimed(&store, 9).await.jobs;
    assert_eq!(jobs.len(), 2);
    store.give_back(receipt(&jobs[0])).await.unwrap();
    store.release(vec![jobs[1].lease.clone()]).await.unwrap();
    assert_eq!((deferred(), claimed(&store, 9).await.jobs.len()), (3, 2));
}

#[tokio::test]
async fn lists_counts_and_selections_include_deferred_jobs() {
    let file = File::new();
    let store = file.store();
    let many = "INSERT INTO jobs (type, status, completed_at)
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100) SELECT 'many', 'completed', i FROM n";
    store.enqueue(vec![due_in(DAY), job("work"), due_in(DAY)]).await.unwrap();
    let failed = claimed(&store, 1).await.jobs.remove(0);
    store.fail(receipt(&failed), failure(Next::Retry(DAY))).await.unwrap();
    store.enqueue(vec![job("work")]).await.unwrap();
    file.foreign().execute(many, []).unwrap();
    for (status, expected) in [(Status::Pending, 3), (Status::Failed, 1)] {
        assert_eq!(store.counts().await.unwrap()[&status], expected);
        for limit in [1, 2, 9] {
            let filter = Filter { status: Some(status), job_type: None, limit };
            let listed = store.list(filter).await.unwrap();
            assert_eq!(listed.len() as u64, expected.min(limit as u64));
            assert!(listed.iter().map(|job| job.reference).rev().is_sorted());
            let selection = Selection { states: vec![status], job_type: None, older_than: None, before: None, limit };
            assert_eq!(store.select(selection).await.unwrap().jobs.len(), listed.len());
        }
    }
}

#[tokio::test]
async fn many_foreign_jobs_due_later_are_deferred_by_a_claim() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    add_foreign(&foreign, 2500);
    store.enqueue(vec![NewJob { priority: -9, ..job("work") }]).await.unwrap();
    let first = claimed(&store, 9).await;
    assert_eq!(first.jobs.len(), 1);
    assert!(first.next_due.is_some_and(|due| due > HOUR / 2 && due <= HOUR), "{:?}", first.next_due);
    let after_one = count(&foreign, "deferred");
    assert!((1..2500).contains(&after_one), "{after_one}");
    for _ in 0..3 {
        let claims = claimed(&store, 9).await;
        assert!(claims.jobs.is_empty() && claims.next_due.is_some_and(|due| due > HOUR / 2), "{claims:?}");
    }
    assert_eq!(count(&foreign, "NOT deferred AND status = 'pending'"), 0);
}

#[tokio::test]
async fn a_few_jobs_due_later_are_not_deferred() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    add_foreign(&foreign, 10);
    let commits = store.commits();
    assert!(claimed(&store, 9).await.next_due.is_some());
    assert_eq!((store.commits(), count(&foreign, "deferred")), (commits, 0));
}

#[tokio::test]
async fn more_jobs_come_due_at_once_than_one_claim_promotes() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    add_foreign(&foreign, 2500);
    foreign.execute("UPDATE jobs SET deferred = 1, scheduled_at = 1700000000000 + seq", []).unwrap();
    let mut taken = 0;
    for _ in 0..9 {
        let claims = claimed(&store, 1000).await;
        taken += claims.jobs.len();
        assert!(taken == 2500 || claims.next_due.is_none_or(|due| due.is_zero()), "{taken}: {:?}", claims.next_due);
    }
    assert_eq!(taken, 2500);
}

#[tokio::test]
async fn a_queue_of_version_1_is_migrated() {
    const FIRST: &str = include_str!("../../../host/src/queue/sqlite/migrations/0001_queue.sql");
    let file = File::new();
    let foreign = file.foreign();
    foreign.execute_batch(FIRST).unwrap();
    foreign.execute_batch("CREATE TABLE jobq_queues (table_name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT; INSERT INTO jobq_queues VALUES ('jobs', 1)").unwrap();
    add_foreign(&foreign, 100);
    foreign.execute("INSERT INTO jobs (id, type, scheduled_at) VALUES ('due', 'work', 1700000000000)", []).unwrap();
    let store = file.store();
    assert_eq!(count(&foreign, "deferred"), 100);
    let claims = claimed(&store, 9).await;
    assert_eq!(claims.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["due"]);
    assert!(claims.next_due.is_some());
}
