//! The fuel limit.

use jobq::sandbox::{GuestOutcome, Metering};

use super::support::{Run, guest};

fn burning(iterations: u64) -> Run {
    Run::of(guest("fuel", Metering::Fuel), &format!(r#"{{"iterations":{iterations}}}"#))
}

#[tokio::test]
async fn a_guest_without_fuel_is_stopped() {
    let mut run = burning(u64::MAX);
    run.limits.fuel = Some(10_000_000);
    let (report, _) = run.beside_a_neighbour().await;
    let GuestOutcome::OutOfFuel(text) = &report.outcome else { panic!("{report:?}") };
    assert!(text.contains("its fuel of 10000000:\n  at "), "{text}");
    assert_eq!(report.fuel, Some(10_000_000));
}

#[tokio::test]
async fn the_same_work_uses_the_same_fuel() {
    let (first, second) = (burning(10_000).alone().await, burning(10_000).alone().await);
    assert!(matches!(first.outcome, GuestOutcome::Completed(_)), "{first:?}");
    assert_eq!(first.fuel, second.fuel);
    assert!(first.fuel.is_some_and(|fuel| fuel > 10_000), "{first:?}");
}

#[tokio::test]
async fn without_a_limit_no_fuel_is_counted() {
    let report = Run::guest("fuel", r#"{"iterations":10000}"#).alone().await;
    assert!(matches!(report.outcome, GuestOutcome::Completed(_)), "{report:?}");
    assert_eq!(report.fuel, None);
}

/// The settings may have changed between the load of the file and the attempt.
#[tokio::test]
async fn limits_of_the_other_engine_are_ignored() {
    let mut run = burning(10);
    run.limits.fuel = None;
    let report = run.alone().await;
    assert!(matches!(report.outcome, GuestOutcome::Completed(_)), "{report:?}");
    assert_eq!(report.fuel, None);

    let mut run = Run::guest("fuel", r#"{"iterations":10}"#);
    run.limits.fuel = Some(1_000_000);
    let report = run.alone().await;
    assert!(matches!(report.outcome, GuestOutcome::Completed(_)), "{report:?}");
    assert_eq!(report.fuel, None);
}
