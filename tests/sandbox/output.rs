//! The limits on a guest's output and result.

use jobq::sandbox::{GuestOutcome, Line, Source};

use super::support::{MIB, Run, kept};

fn limited(name: &str, payload: &str, max_log: usize) -> Run {
    let mut run = Run::guest(name, payload);
    run.limits.max_log = max_log;
    run
}

fn assert_dropped(lines: &[Line], at_least: u64) {
    let last = lines.last().expect("lines");
    assert_eq!((last.source, last.level), (Source::Log, Some("warn")));
    let (count, rest) = last.message.split_once(' ').expect("a number first");
    assert!(count.parse::<u64>().expect("a number") >= at_least, "{last:?}");
    assert_eq!(rest, "more bytes of output were not kept: `max_log` is 64.0 KiB");
}

#[tokio::test]
async fn stdout_over_the_limit_is_dropped_and_counted() {
    let run = limited("flood_stdout", r#"{"bytes":5000000}"#, 64 << 10);
    let (report, lines) = run.beside_a_neighbour().await;
    assert_eq!(report.outcome, GuestOutcome::Completed("5000000".into()));
    let (bytes, _) = kept(&lines, Source::Stdout);
    assert!(bytes > 60 << 10 && bytes <= 64 << 10, "{bytes}");
    assert_dropped(&lines, 4_900_000);
}

#[tokio::test]
async fn stderr_over_the_limit_is_dropped_and_counted() {
    let run = limited("flood_stderr", r#"{"bytes":5000000}"#, 64 << 10);
    let (report, lines) = run.beside_a_neighbour().await;
    assert_eq!(report.outcome, GuestOutcome::Completed("5000000".into()));
    let (bytes, _) = kept(&lines, Source::Stderr);
    assert!(bytes > 60 << 10 && bytes <= 64 << 10, "{bytes}");
    assert_dropped(&lines, 4_900_000);
}

#[tokio::test]
async fn log_lines_over_the_limit_are_dropped_and_counted() {
    let run = limited("flood_log", r#"{"lines":100000,"bytes":100}"#, 64 << 10);
    let (report, lines) = run.beside_a_neighbour().await;
    assert_eq!(report.outcome, GuestOutcome::Completed("100000".into()));
    assert!(lines.len() <= 657, "{}", lines.len());
    assert_dropped(&lines, 9_000_000);
}

/// A handler that logs a line of `bytes` NULs this many times.
fn logging(times: u32, bytes: usize) -> Run {
    let fields = format!(
        r#"(import "jobq:handler/log@0.1.0" "write" (func $write (param i32 i32 i32)))
        (global $left (mut i32) (i32.const {times}))"#
    );
    let body = format!(
        "(drop (memory.grow (i32.const 200)))
        (loop
            (call $write (i32.const 1) (i32.const 4096) (i32.const {bytes}))
            (global.set $left (i32.sub (global.get $left) (i32.const 1)))
            (br_if 0 (global.get $left)))"
    );
    let mut run = Run::handler_doing(&fields, &body);
    run.limits.max_log = 64 << 10;
    run
}

#[tokio::test]
async fn a_line_of_many_mebibytes_is_truncated() {
    let (report, lines) = logging(3, 10_000_000).beside_a_neighbour().await;
    assert_eq!(report.outcome, GuestOutcome::Completed(String::new()));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].message.len(), 64 << 10);
    assert_dropped(&lines, 29_900_000);
}

#[tokio::test]
async fn a_line_over_the_copy_limit_is_a_trap_that_says_so() {
    let fields = r#"(import "jobq:handler/log@0.1.0" "write" (func $write (param i32 i32 i32)))"#;
    let run = Run::handler_doing(
        fields,
        "(drop (memory.grow (i32.const 400))) (call $write (i32.const 1) (i32.const 4096) (i32.const 20000000))",
    );
    let (report, _) = run.beside_a_neighbour().await;
    let GuestOutcome::Trapped(text) = &report.outcome else { panic!("{report:?}") };
    assert!(text.contains("too much data is being copied"), "{text}");
}

#[tokio::test]
async fn a_million_empty_lines_do_not_fill_the_host() {
    let (report, lines) = logging(1_000_000, 0).beside_a_neighbour().await;
    assert_eq!(report.outcome, GuestOutcome::Completed(String::new()));
    assert_eq!(lines.len(), 4096);
}

#[tokio::test]
async fn a_result_over_the_limit_is_a_failure_that_says_so() {
    let mut run = Run::guest("big_result", r#"{"bytes":100001}"#);
    run.limits.max_result = 100_000;
    let (report, _) = run.beside_a_neighbour().await;
    let GuestOutcome::Failed { message, after: None } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(message, "the result has 100001 bytes, more than `max_result` allows (97.7 KiB)");
}

#[tokio::test]
async fn a_result_at_the_limit_completes() {
    let mut run = Run::guest("big_result", r#"{"bytes":100000}"#);
    run.limits.max_result = 100_000;
    let GuestOutcome::Completed(result) = run.alone().await.outcome else { panic!("not completed") };
    assert_eq!(result.len(), 100_000);
}

#[tokio::test]
async fn a_result_over_the_copy_limit_is_a_failure_that_says_so() {
    let (report, _) = Run::guest("big_result", r#"{"bytes":30000000}"#).beside_a_neighbour().await;
    let GuestOutcome::Failed { message, after: None } = &report.outcome else { panic!("{report:?}") };
    assert!(message.contains("far larger than `max_result` allows (1.0 MiB)"), "{message}");
}

#[tokio::test]
async fn an_error_message_is_truncated_at_the_same_limit() {
    let mut run = Run::guest("big_result", r#"{"bytes":2000,"error":true}"#);
    run.limits.max_result = 1000;
    let GuestOutcome::Failed { message, .. } = run.alone().await.outcome else { panic!("not failed") };
    assert!(message.ends_with("x… (1000 bytes more)"), "{message}");
}

#[tokio::test]
async fn a_return_value_that_is_not_utf_8_is_a_failure_that_says_so() {
    for place in ["result", "retry", "fatal"] {
        let (report, _) = Run::guest("bad_utf8", &format!(r#"{{"in":"{place}"}}"#)).beside_a_neighbour().await;
        let GuestOutcome::Failed { message, after: None } = &report.outcome else { panic!("{report:?}") };
        assert!(message.starts_with("the return value of the handler is not UTF-8 text: invalid utf-8"), "{message}");
    }
}

#[tokio::test]
async fn a_log_line_or_progress_that_is_not_utf_8_is_a_trap_that_says_so() {
    for place in ["log", "progress"] {
        let (report, _) = Run::guest("bad_utf8", &format!(r#"{{"in":"{place}"}}"#)).beside_a_neighbour().await;
        let GuestOutcome::Trapped(text) = &report.outcome else { panic!("{report:?}") };
        assert!(text.contains("invalid utf-8") && text.contains("\n  at "), "{text}");
    }
}

#[tokio::test]
async fn control_characters_pass_unchanged_everywhere() {
    const TEXT: &str = "a\0b \\u0000 \\ud800 \u{1b}[31m\r\n \u{10FFFF}";
    let speak = async |place: &str| {
        let run = Run::guest("nul", &format!(r#"{{"in":"{place}"}}"#));
        let outcome = run.alone().await.outcome;
        (outcome, run)
    };
    assert_eq!(speak("result").await.0, GuestOutcome::Completed(TEXT.into()));
    assert_eq!(speak("retry").await.0, GuestOutcome::Failed { message: TEXT.into(), after: None });
    assert_eq!(speak("fatal").await.0, GuestOutcome::Fatal(TEXT.into()));
    assert_eq!(speak("log").await.1.handle.take_lines()[0].message, TEXT);
    assert_eq!(speak("progress").await.1.handle.take_progress(), Some((50, TEXT.into())));
    let lines: Vec<_> = speak("stdout").await.1.handle.take_lines().into_iter().map(|line| line.message).collect();
    assert_eq!(lines, TEXT.split('\n').collect::<Vec<_>>());
}

#[tokio::test]
async fn a_long_line_of_stdout_is_split_between_characters() {
    let run = Run::guest("program", &format!(r#"{{"stderr":"x{}"}}"#, "🦀".repeat(10_000)));
    let outcome = run.alone().await.outcome;
    assert_eq!(outcome, GuestOutcome::Completed(String::new()));
    let lines = run.handle.take_lines();
    assert!(lines.len() == 3 && lines.iter().all(|line| !line.message.contains('\u{fffd}')), "{}", lines.len());
    assert_eq!(kept(&lines, Source::Stderr).0, 40_001);
}

#[tokio::test]
async fn a_long_progress_message_is_truncated() {
    let import = r#"(import "jobq:handler/context@0.1.0" "progress" (func $progress (param i32 i32 i32)))"#;
    let body =
        "(drop (memory.grow (i32.const 16))) (call $progress (i32.const 7) (i32.const 4096) (i32.const 1000000))";
    let run = Run::handler_doing(import, body);
    assert_eq!(run.alone().await.outcome, GuestOutcome::Completed(String::new()));
    let (percent, message) = run.handle.take_progress().expect("progress");
    assert_eq!((percent, message.len()), (7, 1024));
    assert!(message.capacity() < MIB);
}
