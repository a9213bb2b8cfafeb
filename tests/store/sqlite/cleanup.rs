//! Cleanup beside tables of the application, and of rows whose job was replaced by a foreign program.

use std::time::Duration;

use jobq::queue::{Pruned, Retention, Store};

use super::File;
use crate::store::{claim, job, line, receipt};

const ALL: Retention =
    Retention { completed: Some(Duration::ZERO), cancelled: Some(Duration::ZERO), dead: Some(Duration::ZERO) };

/// A queue with `count` completed jobs, each with a log line.
async fn completed(file: &File, count: usize) -> std::sync::Arc<jobq::queue::sqlite::SqliteStore> {
    let store = file.store();
    store.enqueue((0..count).map(|_| job("work")).collect()).await.unwrap();
    for claimed in store.claim(claim("work", count)).await.unwrap().jobs {
        store.complete(receipt(&claimed), String::new(), vec![]).await.unwrap();
    }
    store
}

async fn prune_all(store: &impl Store) -> Pruned {
    let mut all = Pruned::default();
    loop {
        let pruned = store.prune(ALL, 2).await.unwrap();
        all.deleted += pruned.deleted;
        all.obstacles.extend(pruned.obstacles);
        if !pruned.more {
            return all;
        }
    }
}

fn count(file: &File, table: &str) -> i64 {
    file.foreign().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn jobs_held_by_a_foreign_key_are_kept_and_the_others_deleted() {
    for (column, value, rule) in [
        ("job TEXT REFERENCES jobs(id)", "id", ""),
        ("job INTEGER REFERENCES jobs ON DELETE RESTRICT", "seq", ""),
        ("job TEXT REFERENCES jobs(id) DEFERRABLE INITIALLY DEFERRED", "id", ""),
        (
            "job TEXT, FOREIGN KEY (job) REFERENCES jobs(id) ON DELETE NO ACTION",
            "id",
            "CREATE INDEX i ON \"my orders\" (job)",
        ),
    ] {
        let file = File::new();
        let store = completed(&file, 9).await;
        let orders = format!(
            "CREATE TABLE \"my orders\" ({column}); {rule};
             INSERT INTO \"my orders\" SELECT {value} FROM jobs WHERE seq IN (1, 2, 3, 7)"
        );
        file.foreign().execute_batch(&orders).unwrap();
        for round in [5, 0] {
            let pruned = prune_all(&*store).await;
            assert_eq!(pruned.deleted, round, "{column}");
            let obstacle = pruned.obstacles.into_iter().next().unwrap();
            assert!(obstacle.contains("`my orders`") && obstacle.contains("ON DELETE SET NULL"), "{obstacle}");
        }
        store.enqueue(vec![job("work")]).await.unwrap();
        file.foreign().execute_batch("DELETE FROM \"my orders\"").unwrap();
        assert_eq!(prune_all(&*store).await, Pruned { deleted: 4, ..Pruned::default() }, "{column}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_call_is_short_and_the_next_continues_after_jobs_that_are_kept() {
    const ROWS: usize = 20_000;
    let file = File::new();
    let store = file.store();
    let fill = format!(
        "INSERT INTO jobs (type, status, completed_at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT 'work', 'completed', i FROM n;
         CREATE TABLE orders (job INTEGER PRIMARY KEY REFERENCES jobs(seq));
         INSERT INTO orders SELECT seq FROM jobs WHERE seq <= {ROWS} / 2"
    );
    file.foreign().execute_batch(&fill).unwrap();
    let first = store.prune(ALL, usize::MAX).await.unwrap();
    assert!(first.more && first.deleted < ROWS / 2, "{first:?}");
    let (mut deleted, mut more, mut calls) = (first.deleted, true, 1);
    while more {
        let pruned = store.prune(ALL, usize::MAX).await.unwrap();
        (deleted, more, calls) = (deleted + pruned.deleted, pruned.more, calls + 1);
        assert!(calls <= ROWS, "no progress");
    }
    assert_eq!((deleted, count(&file, "jobs")), (ROWS / 2, 10_000));
}

#[tokio::test]
async fn a_foreign_key_with_on_delete_holds_nothing_up() {
    for (rule, left) in [("SET NULL", 2), ("CASCADE", 0)] {
        let file = File::new();
        let store = completed(&file, 2).await;
        let orders = format!(
            "CREATE TABLE orders (job TEXT REFERENCES jobs(id) ON DELETE {rule}); INSERT INTO orders SELECT id FROM jobs"
        );
        file.foreign().execute_batch(&orders).unwrap();
        assert_eq!(prune_all(&*store).await, Pruned { deleted: 2, ..Pruned::default() });
        assert_eq!(count(&file, "orders"), left);
    }
}

#[tokio::test]
async fn rows_of_a_replaced_job_are_deleted_later() {
    let file = File::new();
    let store = completed(&file, 3).await;
    let running = {
        store.enqueue(vec![job("work")]).await.unwrap();
        store.claim(claim("work", 1)).await.unwrap().jobs.remove(0)
    };
    let said = jobq::queue::Progress { lease: running.lease.clone(), lines: vec![line("so far")], progress: None };
    store.save_progress(vec![said]).await.unwrap();
    let replace = "INSERT OR REPLACE INTO jobs (id, type) SELECT id, 'again' FROM jobs WHERE seq IN (1, 4)";
    file.foreign().execute(replace, []).unwrap();
    assert_eq!((count(&file, "jobs__attempts"), count(&file, "jobs__logs")), (3, 4));
    let keep = Retention::default();
    store.prune(keep, 9).await.unwrap();
    assert_eq!((count(&file, "jobs__attempts"), count(&file, "jobs__logs")), (2, 2));
    assert_eq!(count(&file, "jobs__logs WHERE seq IN (1, 4)"), 0);
}

#[tokio::test]
async fn the_orphan_scan_takes_one_step_at_a_time_and_starts_over() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    let fill = "INSERT INTO jobs (type) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT 'work' FROM n;
                INSERT INTO jobs__attempts (seq, lease, attempt, outcome, started_at, duration_ms) SELECT seq, 1, 1, 'lost', 1, 1 FROM jobs";
    foreign.execute_batch(fill).unwrap();
    let leave = "INSERT INTO jobs__attempts (seq, lease, attempt, outcome, started_at, duration_ms) VALUES (?1, 1, 1, 'lost', 1, 1)";
    for orphan in [6000, 0] {
        foreign.execute(leave, [orphan]).unwrap();
        let mut calls = 0;
        while count(&file, "jobs__attempts") > 5000 {
            store.prune(Retention::default(), 9).await.unwrap();
            calls += 1;
            assert!(calls < 10, "{orphan} is never found");
        }
    }
    assert_eq!(count(&file, "jobs__attempts WHERE seq IN (SELECT seq FROM jobs)"), 5000);
}

/// How often a text is in the database and in its write-ahead log.
fn hits(file: &File, text: &str) -> usize {
    let count = |suffix: &str| {
        let bytes = std::fs::read(file.path().with_extension(format!("db{suffix}"))).unwrap_or_default();
        bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    };
    count("") + count("-wal")
}

#[tokio::test]
async fn the_text_of_deleted_jobs_is_gone_from_the_files_and_the_database_shrinks() {
    const MARKER: &str = "personal-data-of-ada";
    const ROWS: usize = 600;
    let file = File::new();
    let store = file.store();
    let payload = format!("\"{MARKER} {} {MARKER}\"", "x".repeat(20_000));
    let payload = jobq::queue::Payload::parse(payload, 1 << 20).unwrap();
    let jobs = (0..ROWS).map(|_| jobq::queue::NewJob { payload: payload.clone(), ..job("work") });
    store.enqueue(jobs.collect()).await.unwrap();
    let mut jobs = store.claim(claim("work", ROWS)).await.unwrap().jobs;
    let kept = jobs.pop().unwrap();
    for claimed in &jobs {
        let mut end = receipt(claimed);
        end.lines = vec![line(MARKER)];
        store.complete(end, MARKER.into(), vec![]).await.unwrap();
    }
    let full = file.path().metadata().unwrap().len();
    assert!(hits(&file, MARKER) > ROWS);
    assert_eq!(prune_all(&*store).await.deleted, ROWS - 1);
    assert_eq!(hits(&file, MARKER), 2, "of the job that is still running");
    let left = file.path().metadata().unwrap().len();
    assert!(left < full / 2, "{full} bytes, and {left} after the cleanup");
    let integrity: String = file.foreign().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    assert!(store.complete(receipt(&kept), String::new(), vec![]).await.is_ok());
}

#[tokio::test]
async fn the_text_of_jobs_deleted_by_hand_is_gone_from_the_files() {
    const MARKER: &str = "personal-data-of-ada";
    let file = File::new();
    let store = file.store();
    let payload = jobq::queue::Payload::parse(format!("\"{MARKER}\""), 1 << 20).unwrap();
    let jobs = (0..20).map(|_| jobq::queue::NewJob { payload: payload.clone(), ..job("work") });
    store.enqueue(jobs.collect()).await.unwrap();
    assert!(hits(&file, MARKER) >= 20);
    let selection = jobq::queue::Selection {
        states: vec![jobq::queue::Status::Pending],
        job_type: None,
        older_than: None,
        before: None,
        limit: 100,
    };
    let selected = store.select(selection).await.unwrap();
    let deleted = store.delete_many(selected.jobs, vec![jobq::queue::Status::Pending]).await.unwrap();
    assert_eq!((deleted.deleted, hits(&file, MARKER)), (20, 0));
}
