//! Opening a file: what is created, what is refused and with which message.

use std::sync::Barrier;
use std::time::Duration;
use std::{fs, thread};

use jobq::queue::sqlite::{Durability, OpenError, OpenMode, QueueOptions, SqliteStore, TableName};
use jobq::queue::{Store, StoreError};

use super::File;
use crate::store::{claim, job};

fn refused(options: QueueOptions, mode: OpenMode) -> OpenError {
    match SqliteStore::open(options, mode) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

fn named(file: &File, table: &str) -> QueueOptions {
    QueueOptions { table: TableName::parse(table).unwrap(), ..file.options() }
}

#[test]
fn a_missing_file_and_a_missing_table_have_different_errors() {
    let file = File::new();
    let error = refused(file.options(), OpenMode::Existing);
    assert!(matches!(error, OpenError::NoDatabase { .. }), "{error}");
    assert!(!file.path().exists());
    drop(file.store());
    let error = refused(named(&file, "mails"), OpenMode::Existing);
    assert!(matches!(error, OpenError::NoTable { .. }) && error.to_string().contains("`mails`"), "{error}");
    assert!(SqliteStore::open(file.options(), OpenMode::Existing).is_ok());
}

#[test]
fn invalid_paths_are_refused() {
    let file = File::new();
    let directory = file.path().parent().unwrap().to_owned();
    let error = refused(QueueOptions::new(directory.join("no/such/queue.db")), OpenMode::Create);
    assert!(matches!(error, OpenError::NoDirectory { .. }), "{error}");
    let error = refused(QueueOptions::new(&directory), OpenMode::Create);
    assert!(matches!(error, OpenError::NotAFile { .. }), "{error}");
    for content in ["hello", &"not a database ".repeat(1000)] {
        fs::write(file.path(), content).unwrap();
        let error = refused(file.options(), OpenMode::Create);
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error}");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), content);
    }
}

/// `/proc`, because root may write in any ordinary directory.
#[test]
#[cfg(target_os = "linux")]
fn an_unwritable_directory_is_refused() {
    let error = refused(QueueOptions::new("/proc/queue.db"), OpenMode::Create);
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error}");
}

#[test]
fn a_table_name_used_by_the_application_is_refused() {
    for object in ["CREATE TABLE jobs (a)", "CREATE TABLE JOBS (a)", "CREATE VIEW jobs AS SELECT 1"] {
        let file = File::new();
        file.foreign().execute_batch(object).unwrap();
        for mode in [OpenMode::Create, OpenMode::Existing] {
            let error = refused(file.options(), mode);
            assert!(matches!(error, OpenError::ForeignTable { .. }) && error.to_string().contains("`jobs`"), "{error}");
        }
        assert!(SqliteStore::open(named(&file, "queue"), OpenMode::Create).is_ok());
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_unchanged() {
    let file = File::new();
    drop(file.store());
    file.foreign().execute("UPDATE jobq_queues SET version = 99", []).unwrap();
    let error = refused(file.options(), OpenMode::Create);
    assert!(matches!(error, OpenError::Newer { version: 99, .. }), "{error}");
    let version: i64 = file.foreign().query_row("SELECT version FROM jobq_queues", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[test]
fn a_dropped_table_is_not_silently_recreated() {
    let file = File::new();
    drop(file.store());
    file.foreign().execute_batch("DROP TABLE jobs").unwrap();
    let error = refused(file.options(), OpenMode::Create);
    assert!(matches!(error, OpenError::DroppedTable { .. }), "{error}");
}

#[tokio::test]
async fn queues_in_one_file_are_independent() {
    let file = File::new();
    file.foreign().execute_batch("CREATE TABLE customers (name)").unwrap();
    for name in ["jobs", "select", "_", "J0bs_2"] {
        let store = SqliteStore::open(named(&file, name), OpenMode::Create).unwrap();
        assert!(store.claim(claim("work", 9)).await.unwrap().jobs.is_empty(), "{name}");
        store.enqueue(vec![job("work")]).await.unwrap();
        store.close().await;
    }
    let tables: i64 = file.foreign().query_row("SELECT count(*) FROM jobq_queues", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 4);
}

#[test]
fn concurrent_opens_all_succeed() {
    let file = File::new();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                SqliteStore::open(file.options(), OpenMode::Create).unwrap();
            });
        }
    });
    let versions: i64 = file.foreign().query_row("SELECT count(*) FROM jobq_queues", [], |row| row.get(0)).unwrap();
    assert_eq!(versions, 1);
}

#[test]
fn a_queue_being_created_is_not_taken_for_a_foreign_table() {
    let file = File::new();
    let _kept = file.store();
    for round in 0..200 {
        let options = named(&file, &format!("queue_{round}"));
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    SqliteStore::open(options.clone(), OpenMode::Create).unwrap();
                });
            }
        });
    }
}

#[test]
fn the_file_is_in_wal_mode() {
    let file = File::new();
    let full = QueueOptions { durability: Durability::Full, ..file.options() };
    drop(SqliteStore::open(full, OpenMode::Create).unwrap());
    let mode: String = file.foreign().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn an_up_to_date_queue_opens_without_the_write_lock() {
    let file = File::new();
    let _kept = file.store();
    let foreign = file.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = QueueOptions { busy_timeout: Some(Duration::ZERO), ..file.options() };
    assert!(SqliteStore::open(impatient.clone(), OpenMode::Create).is_ok());
    let other = QueueOptions { table: TableName::parse("other").unwrap(), ..impatient };
    let error = refused(other, OpenMode::Create);
    assert!(matches!(error, OpenError::Busy), "{error}");
}

#[tokio::test]
async fn a_closed_store_has_written_everything_and_refuses_calls() {
    let file = File::new();
    let store = file.store();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.enqueue(vec![job("work")]).await })
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert!(!file.path().with_extension("db-wal").exists());
    assert!(matches!(store.enqueue(vec![job("work")]).await, Err(StoreError::Closed)));
    assert!(matches!(store.counts().await, Err(StoreError::Closed)));
    let rows: i64 = file.foreign().query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 20);
    store.close().await;
}
