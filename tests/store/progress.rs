//! Log lines and progress of running attempts.

use jobq::queue::{Claimed, LogLine, LogSource, Progress, Status, Timestamp};

use super::{Queue, line, receipt};

pub(crate) fn progress(claimed: &Claimed, percent: u8, message: &str) -> Progress {
    Progress { lease: claimed.lease.clone(), lines: vec![], progress: Some((percent, message.into())) }
}

fn said(claimed: &Claimed, lines: &[&str]) -> Progress {
    Progress { lease: claimed.lease.clone(), lines: lines.iter().map(|text| line(text)).collect(), progress: None }
}

#[tokio::test]
async fn progress_and_log_lines_are_visible_while_the_attempt_runs() {
    let queue = Queue::fresh();
    let watch = queue.other_jobs().await;
    let claimed = queue.running().await;
    queue.store.save_progress(vec![progress(&claimed, 40, "almost"), said(&claimed, &["one", "two"])]).await.unwrap();
    queue.store.save_progress(vec![said(&claimed, &["three"])]).await.unwrap();
    let stored = queue.job(&claimed.id).await;
    assert_eq!((stored.progress, stored.status), (Some((40, "almost".into())), Status::Running));
    let lines = queue.store.logs(&claimed.id, 0).await.unwrap();
    let texts: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    assert!(lines.iter().all(|line| (line.attempt, line.lease) == (1, claimed.lease.token)));
    watch.are_unchanged(&queue).await;
}

#[tokio::test]
async fn log_lines_come_back_unchanged_after_those_skipped() {
    let queue = Queue::fresh();
    let claimed = queue.running().await;
    let written: Vec<LogLine> = [
        (LogSource::Log, Some("debug")),
        (LogSource::Log, Some("error")),
        (LogSource::Stdout, None),
        (LogSource::Stderr, None),
    ]
    .into_iter()
    .zip(0..)
    .map(|((source, level), number)| LogLine {
        source,
        level,
        attempt: 1,
        lease: claimed.lease.token,
        time: Timestamp::from_millis(number),
        message: format!("\0{number} 🦀"),
    })
    .collect();
    let entry = Progress { lease: claimed.lease.clone(), lines: written.clone(), progress: None };
    queue.store.save_progress(vec![entry]).await.unwrap();
    for skip in [0, 1, 3, 4, 5, usize::MAX] {
        let expected = written.get(skip..).unwrap_or_default();
        assert_eq!(queue.store.logs(&claimed.id, skip).await.unwrap(), expected, "after {skip}");
    }
}

#[tokio::test]
async fn a_second_attempt_appends_to_the_log_of_the_first() {
    let queue = Queue::fresh();
    let first = queue.in_state(Status::Failed).await;
    let second = queue.claim(1).await.remove(0);
    queue.store.save_progress(vec![said(&second, &["again"])]).await.unwrap();
    queue.store.complete(receipt(&second), String::new(), vec![]).await.unwrap();
    let lines = queue.store.logs(&first.id, 0).await.unwrap();
    let told: Vec<(u32, &str)> = lines.iter().map(|line| (line.attempt, line.message.as_str())).collect();
    assert_eq!(told, [(1, "goodbye"), (2, "again"), (2, "goodbye")]);
}

#[tokio::test]
async fn a_stale_lease_saves_no_progress() {
    let queue = Queue::fresh();
    let stale = queue.in_state(Status::Cancelled).await;
    let good = queue.running().await;
    let before = queue.job(&stale.id).await;
    let entries = vec![progress(&stale, 1, "no"), said(&stale, &["no"]), said(&good, &["yes"])];
    queue.store.save_progress(entries).await.unwrap();
    assert_eq!(queue.job(&stale.id).await, before);
    assert_eq!(queue.store.logs(&stale.id, 0).await.unwrap(), []);
    assert_eq!(queue.store.logs(&good.id, 0).await.unwrap().len(), 1);
}
