//! Ordinary WASI programs as handlers: payload on stdin, result on stdout, exit status as the outcome.

use std::collections::BTreeMap;

use jobq::sandbox::{GuestOutcome, Kind, Metering, Source};
use serde_json::{Value, json};

use super::support::{Run, guest, kept};

const BOTH: [&str; 2] = ["program", "program_p1"];

async fn run(name: &str, payload: Value) -> GuestOutcome {
    Run::guest(name, &payload.to_string()).alone().await.outcome
}

fn failed(message: &str) -> GuestOutcome {
    GuestOutcome::Failed { message: message.into(), after: None }
}

#[tokio::test]
async fn programs_are_recognised() {
    for name in BOTH {
        assert_eq!(guest(name, Metering::Time).kind(), Kind::Program);
    }
    assert_eq!(guest("echo", Metering::Time).kind(), Kind::Handler);
}

#[tokio::test]
async fn stdin_is_the_payload_and_stdout_is_the_result() {
    for name in BOTH {
        let payload = json!({"echo": true, "stderr": "talk"}).to_string();
        let run = Run::guest(name, &payload);
        assert_eq!(run.alone().await.outcome, GuestOutcome::Completed(payload.clone()));
        let lines = run.handle.take_lines();
        assert_eq!((kept(&lines, Source::Stdout), kept(&lines, Source::Stderr)), ((0, 0), (4, 1)));
    }
}

#[tokio::test]
async fn one_trailing_newline_is_dropped() {
    for (written, result) in [("a\n", "a"), ("a\n\n", "a\n"), ("\n", ""), ("", ""), ("a", "a"), ("a\r\n", "a\r")] {
        assert_eq!(run("program", json!({"stdout": written})).await, GuestOutcome::Completed(result.into()));
    }
}

#[tokio::test]
async fn the_environment_has_the_job_and_the_grants() {
    for name in BOTH {
        let mut run = Run::guest(name, r#"{"env":true}"#);
        run.grants.env = BTreeMap::from([("A".into(), "1".into()), ("JOBQ_ATTEMPT".into(), "forged".into())]);
        let GuestOutcome::Completed(env) = run.alone().await.outcome else { panic!("not completed") };
        let env: Value = serde_json::from_str(&env).expect("JSON");
        assert_eq!(
            env,
            json!({
                "A": "1", "JOBQ_JOB_ID": run.call.id, "JOBQ_JOB_TYPE": "tested",
                "JOBQ_ATTEMPT": "1", "JOBQ_MAX_ATTEMPTS": "3",
            })
        );
    }
}

#[tokio::test]
async fn exit_0_completes_and_any_other_status_fails_with_the_end_of_stderr() {
    for name in BOTH {
        assert_eq!(run(name, json!({"stdout": "r", "exit": 0})).await, GuestOutcome::Completed("r".into()));
        let outcome = run(name, json!({"stdout": "r", "stderr": "first\nthe reason\n", "exit": 3})).await;
        assert_eq!(outcome, failed("first\nthe reason"));
        let silent = failed("the program exited with an error and wrote nothing to stderr");
        assert_eq!(run(name, json!({"exit": 1})).await, silent);
    }
}

#[tokio::test]
async fn the_error_message_is_the_end_of_a_long_stderr() {
    let text = format!("{}the end", "a line of talk\n".repeat(2000));
    let GuestOutcome::Failed { message, .. } = run("program", json!({"stderr": text, "exit": 1})).await else {
        panic!("not failed")
    };
    assert!(
        message.len() <= 4096 && message.starts_with("a line of talk\n") && message.ends_with("\nthe end"),
        "{message}"
    );
}

#[tokio::test]
async fn a_panic_ends_a_program_with_its_message() {
    for name in BOTH {
        let outcome = run(name, json!({"panic": "no paper"})).await;
        let (GuestOutcome::Trapped(text) | GuestOutcome::Failed { message: text, .. }) = &outcome else {
            panic!("{outcome:?}")
        };
        assert!(text.contains("no paper"), "{text}");
    }
}

#[tokio::test]
async fn a_result_over_the_limit_is_a_failure_that_says_so() {
    for (written, fits) in [(1000, true), (1001, false), (50_000, false)] {
        let mut run = Run::guest("program", &json!({"stdout": "x".repeat(written)}).to_string());
        run.limits.max_result = 1000;
        let (report, _) = run.beside_a_neighbour().await;
        if fits {
            assert_eq!(report.outcome, GuestOutcome::Completed("x".repeat(written)));
        } else {
            let message = format!("the result has {written} bytes, more than `max_result` allows (1000 B)");
            assert_eq!(report.outcome, failed(&message));
        }
    }
    let mut run = Run::guest("program", &json!({"stdout": format!("{}\n", "x".repeat(1000))}).to_string());
    run.limits.max_result = 1000;
    assert_eq!(run.alone().await.outcome, GuestOutcome::Completed("x".repeat(1000)));
}
