//! Handlers built against earlier versions of the contract. They are never rebuilt.

use std::path::Path;
use std::time::Duration;

use jobq::sandbox::{FollowUp, GuestOutcome, Metering};

use super::support::{Run, load};

/// The file formats of each guest.
const FORMS: [&str; 2] = ["module.wasm", "component.wasm"];

/// The guest of this version.
fn guest(version: &str, form: &str, payload: &str) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contract").join(version).join(form);
    let wasm = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Run::of(load(&wasm, Metering::Fuel).expect("it loads"), payload)
}

#[tokio::test]
async fn every_return_value_of_0_1_0_still_has_its_meaning() {
    let failed = |message: &str, after| GuestOutcome::Failed { message: message.into(), after };
    for (payload, expected) in [
        ("\"done\"", GuestOutcome::Completed("done".into())),
        ("\"retry\"", failed("again", None)),
        ("\"retry-after\"", failed("later", Some(Duration::from_millis(1500)))),
        ("\"fatal\"", GuestOutcome::Fatal("never".into())),
        ("\"snooze\"", GuestOutcome::Snoozed(Duration::from_millis(2500))),
    ] {
        for form in FORMS {
            assert_eq!(guest("0.1.0", form, payload).alone().await.outcome, expected, "{form}");
        }
    }
}

#[tokio::test]
async fn every_import_of_0_1_0_still_works() {
    for form in FORMS {
        uses_every_import(guest("0.1.0", form, "\"imports\"")).await;
    }
}

async fn uses_every_import(mut run: Run) {
    run.grants.enqueue.insert("next".into());
    let told =
        "0193a5b0-7d6e-7c3f-8a51-000000000001 tested \"imports\" 1/3 remaining=true cancelled=false enqueued denied";
    assert_eq!(run.alone().await.outcome, GuestOutcome::Completed(told.into()));
    let lines: Vec<_> = run.handle.take_lines().into_iter().map(|line| (line.level, line.message)).collect();
    let said = ["debug", "info", "warn", "error"].map(|level| (Some(level), level.to_owned()));
    assert!(lines.starts_with(&said), "{lines:?}");
    assert_eq!(run.handle.take_progress(), Some((42, "under way".into())));
    let next = FollowUp {
        job_type: "next".into(),
        payload: "{}".into(),
        priority: Some(-3),
        delay_ms: Some(1000),
        max_attempts: Some(7),
        unique_key: Some("key".into()),
    };
    assert_eq!(*run.follow_ups.0.lock().expect("not poisoned"), [next]);
}
