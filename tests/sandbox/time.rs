//! The time limit.

use std::time::{Duration, Instant};

use jobq::sandbox::{GuestOutcome, Metering};

use super::support::{Run, handler_doing, load};

const LIMIT: Duration = Duration::from_millis(300);

fn assert_timed_out(outcome: &GuestOutcome, place: &str) {
    let GuestOutcome::TimedOut(text) = outcome else { panic!("{outcome:?}") };
    assert!(text.contains("its time limit of 300ms"), "{text}");
    assert!(text.contains(place), "{text}");
}

#[tokio::test]
async fn a_loop_is_stopped_at_its_time_limit() {
    let (report, _) = Run::guest("spin", "{}").timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "at spin");
    assert!(report.duration >= LIMIT);
}

#[tokio::test]
async fn a_loop_with_metered_fuel_is_stopped_at_its_time_limit() {
    let plugin = super::support::guest("spin", Metering::Fuel);
    let (report, _) = Run::of(plugin, "{}").timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "at spin");
    assert_eq!(report.fuel, None);
}

#[tokio::test]
async fn a_loop_in_a_start_function_is_stopped() {
    let (report, _) = Run::guest("spin_start", "{}").timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "at spin");
}

#[tokio::test]
async fn a_loop_in_the_allocator_is_stopped() {
    let module = r#"(module
        (memory (export "memory") 1)
        (func $room (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (loop (br 0)) unreachable)
        (func (export "jobq:handler/handler@0.1.0#handle") (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16)))"#;
    let plugin = load(&super::support::handler(module), Metering::Time).expect("a handler");
    let (report, _) = Run::of(plugin, "{}").timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "at ");
}

#[tokio::test]
async fn a_guest_that_sleeps_in_the_host_is_stopped() {
    let (report, _) = Run::guest("sleep", r#"{"ms":600000}"#).timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "while it waited in a call to the host");
    assert!(report.duration >= LIMIT);
}

#[tokio::test]
async fn a_guest_within_its_time_limit_completes() {
    let report = Run::guest("sleep", r#"{"ms":50}"#).alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed("50".into()));
    assert!(report.duration >= Duration::from_millis(50), "{report:?}");
}

#[tokio::test]
async fn an_unreachable_time_limit_is_accepted() {
    let report = Run::guest("echo", "{}").timeout(Duration::MAX).alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed("{}".into()));
}

/// Four guests that never yield and a timer share one thread. The timer must fire.
#[tokio::test]
async fn timers_fire_while_guests_spin() {
    let spinning: Vec<_> = (0..4)
        .map(|_| tokio::spawn(async { Run::guest("spin", "{}").timeout(Duration::from_secs(2)).alone().await }))
        .collect();
    let (start, mut fired) = (Instant::now(), 0);
    while !spinning.iter().all(|guest| guest.is_finished()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        fired += 1;
    }
    assert!(fired >= 8, "{fired} times in {:?}", start.elapsed());
    for guest in spinning {
        let report = guest.await.expect("the host does not panic");
        assert!(matches!(report.outcome, GuestOutcome::TimedOut(_)), "{report:?}");
    }
}

#[tokio::test]
async fn one_timeout_leaves_the_others_alone() {
    let sleeping: Vec<_> =
        (0..5).map(|_| tokio::spawn(async { Run::guest("sleep", r#"{"ms":600}"#).alone().await })).collect();
    let (report, _) = Run::guest("spin", "{}").timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "at spin");
    for guest in sleeping {
        assert_eq!(guest.await.expect("the host does not panic").outcome, GuestOutcome::Completed("600".into()));
    }
}

#[tokio::test]
async fn a_loop_that_fills_a_large_memory_is_stopped() {
    let fill = "(drop (memory.grow (i32.const 1023)))
        (loop (memory.fill (i32.const 2048) (i32.const 1) (i32.const 67000000)) (br 0))";
    let plugin = load(&handler_doing("", fill), Metering::Time).expect("a handler");
    let (report, _) = Run::of(plugin, "{}").timeout(LIMIT).beside_a_neighbour().await;
    assert_timed_out(&report.outcome, "at handle");
}
