//! Stopping and cancelling a guest from outside.

use std::sync::Arc;
use std::time::Duration;

use jobq::sandbox::{AttemptReport, GuestOutcome};

use super::support::Run;

/// Starts a guest, waits until it runs, and stops it.
async fn stopped(run: Run) -> AttemptReport {
    let handle = Arc::clone(&run.handle);
    let running = tokio::spawn(async move { run.alone().await });
    // This test has one thread, so the guest is polled before this returns.
    tokio::task::yield_now().await;
    handle.stop();
    let report = running.await.expect("the host does not panic");
    assert!(!report.duration.is_zero(), "it was stopped before it began");
    report
}

#[tokio::test]
async fn a_spinning_guest_can_be_stopped() {
    assert_eq!(stopped(Run::guest("spin", "{}")).await.outcome, GuestOutcome::Stopped);
}

#[tokio::test]
async fn a_guest_that_sleeps_in_the_host_can_be_stopped() {
    assert_eq!(stopped(Run::guest("sleep", r#"{"ms":600000}"#)).await.outcome, GuestOutcome::Stopped);
}

#[tokio::test]
async fn a_guest_that_spins_in_its_start_function_can_be_stopped() {
    assert_eq!(stopped(Run::guest("spin_start", "{}")).await.outcome, GuestOutcome::Stopped);
}

#[tokio::test]
async fn a_guest_that_is_stopped_before_its_start_never_runs() {
    let run = Run::guest("context", "{}");
    run.handle.stop();
    let report = run.alone().await;
    assert_eq!((report.outcome, report.duration), (GuestOutcome::Stopped, Duration::ZERO));
    assert_eq!(run.handle.take_lines(), []);
}

#[tokio::test]
async fn stopping_one_guest_leaves_its_neighbour_alone() {
    let neighbour = tokio::spawn(async { Run::guest("sleep", r#"{"ms":300}"#).alone().await });
    assert_eq!(stopped(Run::guest("spin", "{}")).await.outcome, GuestOutcome::Stopped);
    assert_eq!(neighbour.await.expect("the host does not panic").outcome, GuestOutcome::Completed("300".into()));
}

#[tokio::test]
async fn a_guest_sees_that_it_is_cancelled() {
    let run = Run::guest("polite", "{}");
    let handle = Arc::clone(&run.handle);
    let running = tokio::spawn(async move { run.alone().await });
    while handle.take_progress().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    handle.cancel();
    assert_eq!(
        running.await.expect("the host does not panic").outcome,
        GuestOutcome::Fatal("cancelled politely".into())
    );
}
