//! Several processes on one file.

use std::time::Duration;

use jobq::queue::sqlite::{OpenMode, QueueOptions, SqliteStore};
use jobq::queue::{ChangeCursor, NewJob, Payload, Store, StoreError};
use tokio::time::timeout;

use super::File;
use crate::home::eventually;
use crate::store::{claim, job, receipt};

#[tokio::test]
async fn one_store_claims_what_another_wrote() {
    let file = File::new();
    let (one, two) = (file.store(), file.store());
    one.enqueue(vec![job("work")]).await.unwrap();
    let claimed = two.claim(claim("work", 9)).await.unwrap().jobs.remove(0);
    assert!(one.claim(claim("work", 9)).await.unwrap().jobs.is_empty());
    two.complete(receipt(&claimed), "done".into(), vec![]).await.unwrap();
    assert_eq!(one.find(&claimed.id).await.unwrap().unwrap().result.as_deref(), Some("done"));
}

#[tokio::test]
async fn a_foreign_write_is_noticed_once() {
    const PACE: Duration = Duration::from_millis(1);
    const NET: Duration = PACE;
    let file = File::new();
    let (one, two) = (file.store(), file.store());
    let seen = one.change(ChangeCursor::default(), PACE, NET).await.unwrap();
    two.enqueue(vec![job("work")]).await.unwrap();
    let seen = one.change(seen, PACE, NET).await.unwrap();
    assert!(timeout(Duration::from_millis(50), one.change(seen, PACE, NET)).await.is_err());
    file.foreign().execute("INSERT INTO jobs (type) VALUES ('work')", []).unwrap();
    one.change(seen, PACE, NET).await.unwrap();
}

#[tokio::test]
async fn two_stores_claim_every_job_once() {
    let file = File::new();
    let stores = [file.store(), file.store()];
    stores[0].enqueue((0..400).map(|_| job("work")).collect()).await.unwrap();
    let calls: Vec<_> = (0..80)
        .map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move { store.claim(claim("work", 5)).await.unwrap().jobs })
        })
        .collect();
    let mut taken = Vec::new();
    for call in calls {
        taken.extend(call.await.unwrap().into_iter().map(|claimed| claimed.lease.job));
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_wait_for_a_foreign_lock_but_reads_do_not() {
    let file = File::new();
    let store = file.store();
    store.enqueue(vec![job("work")]).await.unwrap();
    let claimed = store.claim(claim("work", 1)).await.unwrap().jobs.remove(0);
    let foreign = file.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE; INSERT INTO jobs (type) VALUES ('foreign')").unwrap();

    assert!(store.claim(claim("work", 9)).await.unwrap().jobs.is_empty());
    store.change(ChangeCursor::default(), Duration::from_millis(1), Duration::from_millis(1)).await.unwrap();
    let writes: Vec<_> = (0..50)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.enqueue(vec![job("work")]).await })
        })
        .collect();
    let completion = {
        let (store, end) = (store.clone(), receipt(&claimed));
        tokio::spawn(async move { store.complete(end, "done".into(), vec![]).await })
    };
    assert_eq!(store.find(&claimed.id).await.unwrap().unwrap().result, None);
    assert!(writes.iter().all(|write| !write.is_finished()) && !completion.is_finished());

    foreign.execute_batch("COMMIT").unwrap();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    completion.await.unwrap().unwrap();
    assert_eq!(store.find(&claimed.id).await.unwrap().unwrap().result.as_deref(), Some("done"));
    assert_eq!(store.counts().await.unwrap().values().sum::<u64>(), 52);
}

#[tokio::test]
async fn a_write_that_reaches_its_busy_timeout_writes_nothing() {
    let file = File::new();
    let store =
        SqliteStore::open(QueueOptions { busy_timeout: Some(Duration::ZERO), ..file.options() }, OpenMode::Create)
            .unwrap();
    let foreign = file.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(store.enqueue(vec![job("work")]).await, Err(StoreError::Busy)));
    foreign.execute_batch("COMMIT").unwrap();
    assert_eq!(store.counts().await.unwrap().len(), 0);
    store.enqueue(vec![job("work")]).await.unwrap();
}

#[tokio::test]
async fn a_long_read_transaction_blocks_no_writer() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    foreign.execute_batch("BEGIN").unwrap();
    let before: i64 = foreign.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    store.enqueue(vec![job("work")]).await.unwrap();
    assert_eq!(store.claim(claim("work", 1)).await.unwrap().jobs.len(), 1);
    let after: i64 = foreign.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    assert_eq!((before, after), (0, 0));
    store.close().await;
}

/// Commits are visible only after they were written. With `synchronous=FULL`, the disk could delay them for any time.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn foreign_commits_are_noticed_without_polling() {
    const NEVER: Duration = Duration::from_secs(3600);
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    foreign.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0").unwrap();
    let mut seen = ChangeCursor::default();
    for size in (0..40).map(|round| round * 50) {
        // Otherwise the looks that follow a new request or a change might find it.
        let change = loop {
            let mut change = Box::pin(store.change(seen, NEVER, NEVER));
            match timeout(Duration::from_millis(150), &mut change).await {
                Ok(change) => seen = change.unwrap(),
                Err(_) => break change,
            }
        };
        foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..=size {
            foreign.execute("INSERT INTO jobs (type) VALUES ('work')", []).unwrap();
        }
        foreign.execute_batch("COMMIT").unwrap();
        seen = timeout(Duration::from_secs(60), change).await.expect("nobody looked").unwrap();
    }
}

/// By the checkpoint thread: there are no further calls to the store.
#[tokio::test]
async fn the_log_is_checkpointed_after_a_long_read_transaction() {
    let file = File::new();
    let store = file.store();
    let (reader, other) = (file.foreign(), file.foreign());
    reader.execute_batch("BEGIN; SELECT count(*) FROM jobs").unwrap();
    let _: i64 = reader.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    let large =
        || NewJob { payload: Payload::parse(format!("\"{}\"", "x".repeat(100_000)), 1 << 20).unwrap(), ..job("work") };
    for _ in 0..250 {
        store.enqueue(vec![large()]).await.unwrap();
    }
    let left = || -> i64 {
        other
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
            .unwrap()
    };
    assert!(left() > 6000, "{}", left());
    reader.execute_batch("COMMIT").unwrap();
    eventually("the log to be written back", || (left() == 0).then_some(()));
    store.close().await;
}
