//! Reports of daemons.

use jobq::queue::{Daemon, PluginReport, Timestamp, WorkerName};

use super::{Queue, is_since};

fn daemon(worker: &str) -> Daemon {
    Daemon {
        worker: worker.into(),
        pid: 42,
        started_at: Timestamp::from_millis(1_700_000_000_000),
        seen_at: Timestamp::from_millis(0),
        slots: 8,
        busy: 3,
        plugins: vec![plugin("a"), plugin("b")],
    }
}

fn plugin(name: &str) -> PluginReport {
    PluginReport {
        job_type: name.into(),
        file: format!("{name}.wasm"),
        state: "serving".into(),
        digest: Some("ab".repeat(32)),
        reason: None,
        since: Timestamp::from_millis(1_700_000_000_001),
        attempts: 7,
    }
}

#[tokio::test]
async fn a_report_replaces_the_previous_one() {
    let queue = Queue::fresh();
    let start = Timestamp::now();
    for worker in ["one", "two"] {
        queue.store.announce(daemon(worker)).await.unwrap();
    }
    let changed = Daemon { busy: 0, plugins: vec![plugin("c")], ..daemon("one") };
    queue.store.announce(changed.clone()).await.unwrap();
    let seen = queue.store.daemons().await.unwrap();
    assert!(seen.iter().all(|daemon| is_since(daemon.seen_at, start)));
    let expected = [changed, daemon("two")];
    let without_instant = seen.into_iter().map(|daemon| Daemon { seen_at: Timestamp::from_millis(0), ..daemon });
    assert_eq!(without_instant.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn retire_removes_only_that_daemon() {
    let queue = Queue::fresh();
    for worker in ["one", "two"] {
        queue.store.announce(daemon(worker)).await.unwrap();
    }
    queue.store.retire(&WorkerName::new("one")).await.unwrap();
    let left = queue.store.daemons().await.unwrap();
    assert_eq!((left.len(), left[0].worker.as_str(), left[0].plugins.len()), (1, "two", 2));
}
