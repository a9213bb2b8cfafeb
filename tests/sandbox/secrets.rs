//! A secret reaches its guest and never appears in its output.

use jobq::sandbox::{AttemptHandle, GuestOutcome, Line, Secret};
use serde_json::{Value, json};

use super::support::Run;

/// Contains characters that JSON escapes, so there are several ways to write it.
const VALUE: &str = "hunter2/\"q\"\\\u{e9}-0123456789";

fn keeping(guest: &str, payload: Value) -> Run {
    let mut run = Run::guest(guest, &payload.to_string());
    run.grants.secrets = [("API_KEY".to_owned(), Secret::new(VALUE))].into_iter().collect();
    run
}

fn assert_clean(text: &str) {
    assert!(!text.contains("hunter2") && !text.contains("0123456789"), "{text}");
}

fn lines(handle: &AttemptHandle) -> Vec<Line> {
    let lines = handle.take_lines();
    lines.iter().for_each(|line| assert_clean(&line.message));
    lines
}

#[tokio::test]
async fn a_secret_is_a_variable_of_the_guest_and_not_in_its_result() {
    let report = keeping("env", json!({})).alone().await;
    let GuestOutcome::Completed(result) = report.outcome else { panic!("{report:?}") };
    let result: Value = serde_json::from_str(&result).expect("JSON still");
    assert_eq!(result["env"], json!({"API_KEY": "[secret API_KEY]"}));
}

#[tokio::test]
async fn a_secret_is_removed_from_the_stdout_of_a_program() {
    let report = keeping("program", json!({"env": true})).alone().await;
    let GuestOutcome::Completed(result) = report.outcome else { panic!("{report:?}") };
    assert!(result.contains(r#""API_KEY":"[secret API_KEY]""#), "{result}");
    assert_clean(&result);
}

#[tokio::test]
async fn no_return_value_contains_a_secret() {
    for answer in ["ok", "retry", "retry-after", "fatal"] {
        let report = keeping("answers", json!({"do": answer, "message": VALUE, "ms": 1})).alone().await;
        let text = match report.outcome {
            GuestOutcome::Completed(text) | GuestOutcome::Failed { message: text, .. } | GuestOutcome::Fatal(text) => {
                text
            }
            other => panic!("{other:?}"),
        };
        assert!(text.contains("[secret API_KEY]"), "{text}");
        assert_clean(&text);
    }
}

#[tokio::test]
async fn a_message_is_not_truncated_inside_a_secret() {
    for room in 1..60 {
        let mut run = keeping("answers", json!({"do": "retry", "message": format!("{VALUE}{VALUE}"), "ms": 1}));
        run.limits.max_result = room;
        let report = run.alone().await;
        let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
        assert!(!message.contains("hunt"), "{message}");
    }
}

#[tokio::test]
async fn no_panic_message_contains_a_secret() {
    let run = keeping("panic", json!({"message": format!("it was {VALUE}")}));
    let report = run.alone().await;
    let GuestOutcome::Trapped(text) = report.outcome else { panic!("{report:?}") };
    assert!(text.contains("it was [secret API_KEY]"), "{text}");
    assert_clean(&text);
    assert!(lines(&run.handle).iter().any(|line| line.message.contains("[secret API_KEY]")));
}

#[tokio::test]
async fn no_line_contains_a_secret() {
    for said in [format!("{VALUE}\n"), format!("a {VALUE} b {VALUE}\nand {VALUE}"), VALUE.to_owned()] {
        for stream in ["stdout", "stderr"] {
            let payload = json!({stream: said, "exit": 1});
            let run = keeping("program", payload);
            let report = run.alone().await;
            let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
            assert_clean(&message);
            let lines = lines(&run.handle);
            assert_eq!(
                lines.iter().any(|line| line.message.contains("[secret API_KEY]")),
                stream == "stderr",
                "{lines:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_long_line_is_not_split_inside_a_secret() {
    // Lines are split at 16 KiB, which is at a different position in the secret for each of these.
    for before in 0..VALUE.len() {
        let said = format!("{}{VALUE}{}", "x".repeat((16 << 10) - before), "y".repeat(20_000));
        let run = keeping("program", json!({"stderr": said, "exit": 1}));
        let report = run.alone().await;
        let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
        assert_clean(&message);
        let lines = lines(&run.handle);
        let text: String = lines.iter().map(|line| line.message.as_str()).collect();
        assert!(text.contains("[secret API_KEY]"), "{before}");
        assert!(!text.contains("hunt") && !text.contains("456789"), "{before}");
    }
}

#[tokio::test]
async fn the_end_of_stderr_does_not_start_inside_a_secret() {
    for after in (0..9000).step_by(97) {
        let run = keeping(
            "program",
            json!({"stderr": format!("{}{VALUE}{}", "x".repeat(20_000), "y".repeat(after)), "exit": 1}),
        );
        let report = run.alone().await;
        let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
        assert!(!message.contains("6789") && !message.contains("hunt"), "{after}: {message}");
    }
}

#[tokio::test]
async fn no_follow_up_may_contain_a_secret() {
    for (payload, key) in [(json!({"k": VALUE}).to_string(), "k"), ("{}".to_owned(), VALUE)] {
        let mut run = keeping("follow", json!({"jobs": [{"type": "other", "payload": payload, "unique_key": key}]}));
        run.grants.enqueue = ["other".to_owned()].into();
        let report = run.alone().await;
        let GuestOutcome::Completed(result) = report.outcome else { panic!("{report:?}") };
        assert!(result.contains("denied") && result.contains("contains the secret API_KEY"), "{result}");
        assert_clean(&result);
        assert!(run.follow_ups.0.lock().expect("not poisoned").is_empty());
    }
}
