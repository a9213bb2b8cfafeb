//! Files that are moved, deleted or replaced while they are open.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jobq::queue::sqlite::{OpenMode, QueueOptions, SqliteStore};
use jobq::queue::{ChangeCursor, Store, StoreError};
use tokio::time::timeout;

use super::File;
use crate::store::job;

const NEVER: Duration = Duration::from_secs(3600);

/// Checks that nothing is acknowledged any more and that every call returns the error.
async fn is_over(store: &SqliteStore, file: &Path) {
    let refused = store.enqueue(vec![job("work")]).await;
    let name = file.display().to_string();
    assert!(matches!(&refused, Err(StoreError::Gone(gone)) if *gone == name), "{name}: {refused:?}");
    assert!(matches!(store.health().await, Err(StoreError::Gone(_))), "{name}");
    let change = store.change(ChangeCursor::default(), NEVER, NEVER).await;
    assert!(matches!(change, Err(error) if error.is_fatal() && !error.is_transient()), "{name}");
}

#[tokio::test]
async fn nothing_is_acknowledged_after_a_file_is_lost() {
    for suffix in ["", "-wal", "-shm"] {
        for lose in [
            |file: &Path| fs::remove_file(file).unwrap(),
            |file: &Path| {
                fs::rename(file, file.with_extension("away")).unwrap();
                fs::write(file, "").unwrap();
            },
        ] {
            let file = File::new();
            let store = file.store();
            store.enqueue(vec![job("work")]).await.unwrap();
            let lost = file.path().with_extension(format!("db{suffix}"));
            lose(&lost);
            is_over(&store, &lost).await;
            store.close().await;
        }
    }
}

#[tokio::test]
async fn the_files_of_a_linked_database_are_watched() {
    for suffix in ["-wal", "-shm"] {
        let file = File::new();
        let real = file.path().with_file_name("real.db");
        drop(SqliteStore::open(QueueOptions::new(&real), OpenMode::Create).unwrap());
        std::os::unix::fs::symlink("real.db", file.path()).unwrap();
        let store = file.store();
        store.enqueue(vec![job("work")]).await.unwrap();
        let lost = real.with_extension(format!("db{suffix}"));
        fs::remove_file(&lost).unwrap();
        is_over(&store, &lost).await;
    }
}

#[tokio::test]
async fn a_changed_link_is_another_database() {
    let file = File::new();
    let real = file.path().with_file_name("real.db");
    drop(SqliteStore::open(QueueOptions::new(&real), OpenMode::Create).unwrap());
    std::os::unix::fs::symlink("real.db", file.path()).unwrap();
    let store = file.store();
    let other = file.path().with_file_name("other.db");
    drop(SqliteStore::open(QueueOptions::new(&other), OpenMode::Create).unwrap());
    fs::remove_file(file.path()).unwrap();
    std::os::unix::fs::symlink("other.db", file.path()).unwrap();
    is_over(&store, &real).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn waiting_for_a_change_ends_when_a_file_is_lost() {
    for suffix in ["", "-wal", "-shm"] {
        let file = File::new();
        let store = file.store();
        let seen = store.change(ChangeCursor::default(), NEVER, NEVER).await.unwrap();
        let change = store.change(seen, NEVER, NEVER);
        tokio::pin!(change);
        assert!(timeout(Duration::from_millis(20), &mut change).await.is_err());
        fs::remove_file(file.path().with_extension(format!("db{suffix}"))).unwrap();
        let told = timeout(Duration::from_secs(60), change).await.expect("nobody looked");
        assert!(matches!(told, Err(StoreError::Gone(_))), "{suffix}: {told:?}");
    }
}

#[tokio::test]
async fn a_hard_link_is_warned_about() {
    let file = File::new();
    let store = file.store();
    assert_eq!(store.health().await.unwrap(), None);
    fs::hard_link(file.path(), file.path().with_file_name("other.db")).unwrap();
    let remark = store.health().await.unwrap().unwrap();
    assert!(remark.contains("2 names"), "{remark}");
}
