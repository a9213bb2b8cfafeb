//! Which follow-up jobs a guest may enqueue, and how many.

use std::collections::BTreeSet;

use jobq::sandbox::{FollowUp, GuestOutcome};
use serde_json::{Value, json};

use super::support::Run;

fn following(granted: &[&str], payload: &Value) -> Run {
    let mut run = Run::guest("follow", &payload.to_string());
    run.grants.enqueue = granted.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    run
}

async fn results(run: &Run) -> Vec<Value> {
    let report = run.alone().await;
    let GuestOutcome::Completed(result) = &report.outcome else { panic!("{report:?}") };
    serde_json::from_str(result).expect("a list")
}

#[tokio::test]
async fn a_follow_up_of_a_granted_type_is_passed_on_unchanged() {
    let run = following(
        &["report"],
        &json!({"jobs": [{
            "type": "report", "payload": "{\"n\": 1}", "priority": -7, "delay_ms": 1500, "max_attempts": 9, "unique_key": "k",
        }]}),
    );
    assert_eq!(results(&run).await, [json!({"id": "follow-up 1"})]);
    let taken = run.follow_ups.0.lock().expect("not poisoned").clone();
    assert_eq!(
        taken,
        [FollowUp {
            job_type: "report".into(),
            payload: "{\"n\": 1}".into(),
            priority: Some(-7),
            delay_ms: Some(1500),
            max_attempts: Some(9),
            unique_key: Some("k".into()),
        }]
    );
}

#[tokio::test]
async fn a_follow_up_of_another_type_is_denied_with_the_setting_that_would_allow_it() {
    let run = following(&["report"], &json!({"jobs": [{"type": "send_email"}]}));
    assert_eq!(
        results(&run).await,
        [json!({"denied": "`tested` may not enqueue `send_email`: \
            it needs `enqueue = [\"report\", \"send_email\"]` under `[jobs.tested]` in jobq.toml"})]
    );
    let lines = run.handle.take_lines();
    assert!(lines.len() == 1 && lines[0].message.starts_with("denied a follow-up job: `tested` may not"), "{lines:?}");
    assert!(run.follow_ups.0.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn an_attempt_may_enqueue_at_most_a_thousand_jobs() {
    let run = following(&["report"], &json!({"jobs": [{"type": "report"}], "count": 1002}));
    let enqueued = results(&run).await;
    assert!(enqueued[999].get("id").is_some(), "{:?}", enqueued[999]);
    for follow_up in &enqueued[1000..] {
        assert_eq!(*follow_up, json!({"denied": "one attempt may enqueue at most 1000 follow-up jobs"}));
    }
    assert_eq!(run.follow_ups.0.lock().expect("not poisoned").len(), 1000);
}

#[tokio::test]
async fn the_follow_ups_of_an_attempt_have_a_total_size_limit() {
    let payload = format!("\"{}\"", "x".repeat(1_000_000));
    let run = following(&["report"], &json!({"jobs": [{"type": "report", "payload": payload}], "count": 18}));
    let enqueued = results(&run).await;
    let passed = enqueued.iter().filter(|follow_up| follow_up.get("id").is_some()).count();
    assert_eq!(passed, 16);
    assert_eq!(enqueued[16], json!({"denied": "the follow-up jobs of one attempt may have 16.0 MiB in total"}));
}
