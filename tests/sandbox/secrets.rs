//! What is secret reaches its guest, and nobody through it.

use jobq::sandbox::{GuestOutcome, Line, Secret, Tap};
use serde_json::{Value, json};

use super::support::Run;

/// With what JSON has to escape, so that there are several ways to write it.
const VALUE: &str = "hunter2/\"q\"\\\u{e9}-0123456789";

fn keeping(guest: &str, payload: Value) -> Run {
    let mut run = Run::guest(guest, &payload.to_string());
    run.grants.secrets = [("API_KEY".to_owned(), Secret::new(VALUE))].into_iter().collect();
    run
}

fn assert_clean(text: &str) {
    assert!(!text.contains("hunter2") && !text.contains("0123456789"), "{text}");
}

fn lines(tap: &Tap) -> Vec<Line> {
    let lines = tap.take_lines();
    lines.iter().for_each(|line| assert_clean(&line.message));
    lines
}

#[tokio::test]
async fn it_is_a_variable_of_the_guest_and_not_in_its_result() {
    let report = keeping("env", json!({})).alone().await;
    let GuestOutcome::Completed(result) = report.outcome else { panic!("{report:?}") };
    let result: Value = serde_json::from_str(&result).expect("JSON still");
    assert_eq!(result["env"], json!({"API_KEY": "[secret API_KEY]"}));
}

#[tokio::test]
async fn a_program_has_it_too_and_its_stdout_is_its_result() {
    let report = keeping("program", json!({"env": true})).alone().await;
    let GuestOutcome::Completed(result) = report.outcome else { panic!("{report:?}") };
    assert!(result.contains(r#""API_KEY":"[secret API_KEY]""#), "{result}");
    assert_clean(&result);
}

#[tokio::test]
async fn it_is_in_no_answer() {
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
async fn a_message_that_is_cut_is_not_cut_within_it() {
    for room in 1..60 {
        let mut run = keeping("answers", json!({"do": "retry", "message": format!("{VALUE}{VALUE}"), "ms": 1}));
        run.limits.max_result = room;
        let report = run.alone().await;
        let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
        assert!(!message.contains("hunt"), "{message}");
    }
}

#[tokio::test]
async fn it_is_in_no_panic() {
    let run = keeping("panic", json!({"message": format!("it was {VALUE}")}));
    let report = run.alone().await;
    let GuestOutcome::Trapped(text) = report.outcome else { panic!("{report:?}") };
    assert!(text.contains("it was [secret API_KEY]"), "{text}");
    assert_clean(&text);
    assert!(lines(&run.tap).iter().any(|line| line.message.contains("[secret API_KEY]")));
}

#[tokio::test]
async fn it_is_on_no_line() {
    for said in [format!("{VALUE}\n"), format!("a {VALUE} b {VALUE}\nand {VALUE}"), VALUE.to_owned()] {
        for stream in ["stdout", "stderr"] {
            let payload = json!({stream: said, "exit": 1});
            let run = keeping("program", payload);
            let report = run.alone().await;
            let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
            assert_clean(&message);
            let lines = lines(&run.tap);
            assert_eq!(
                lines.iter().any(|line| line.message.contains("[secret API_KEY]")),
                stream == "stderr",
                "{lines:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_not_cut_within_it() {
    // Lines are cut at 16 KiB: in each of these, that is somewhere else within the secret.
    for before in 0..VALUE.len() {
        let said = format!("{}{VALUE}{}", "x".repeat((16 << 10) - before), "y".repeat(20_000));
        let run = keeping("program", json!({"stderr": said, "exit": 1}));
        let report = run.alone().await;
        let GuestOutcome::Failed { message, .. } = report.outcome else { panic!("{report:?}") };
        assert_clean(&message);
        let lines = lines(&run.tap);
        let text: String = lines.iter().map(|line| line.message.as_str()).collect();
        assert!(text.contains("[secret API_KEY]"), "{before}");
        assert!(!text.contains("hunt") && !text.contains("456789"), "{before}");
    }
}

#[tokio::test]
async fn the_last_words_do_not_begin_within_it() {
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
async fn no_follow_up_may_hold_it() {
    for (payload, key) in [(json!({"k": VALUE}).to_string(), "k"), ("{}".to_owned(), VALUE)] {
        let mut run = keeping("follow", json!({"jobs": [{"type": "other", "payload": payload, "unique_key": key}]}));
        run.grants.enqueue = ["other".to_owned()].into();
        let report = run.alone().await;
        let GuestOutcome::Completed(result) = report.outcome else { panic!("{report:?}") };
        assert!(result.contains("denied") && result.contains("hold the secret API_KEY"), "{result}");
        assert_clean(&result);
        assert!(run.follow_ups.0.lock().expect("not poisoned").is_empty());
    }
}
