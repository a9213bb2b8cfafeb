//! What a handler can return, and what it knows about its job.

use std::time::Duration;

use jobq::sandbox::{GuestOutcome, Kind, Line, Metering, Source};

use super::support::{Run, guest, load};

async fn answer(payload: &str) -> GuestOutcome {
    Run::guest("answers", payload).alone().await.outcome
}

#[tokio::test]
async fn each_return_value_becomes_an_outcome() {
    assert_eq!(answer(r#"{"do":"ok","message":"{\"a\":1}"}"#).await, GuestOutcome::Completed(r#"{"a":1}"#.into()));
    let failed = |after| GuestOutcome::Failed { message: "no 🦀\0".into(), after };
    assert_eq!(answer(r#"{"do":"retry","message":"no 🦀\u0000"}"#).await, failed(None));
    let after = Some(Duration::from_millis(1500));
    assert_eq!(answer(r#"{"do":"retry-after","message":"no 🦀\u0000","ms":1500}"#).await, failed(after));
    assert_eq!(answer(r#"{"do":"fatal","message":"never"}"#).await, GuestOutcome::Fatal("never".into()));
    assert_eq!(
        answer(r#"{"do":"snooze","ms":18446744073709551615}"#).await,
        GuestOutcome::Snoozed(Duration::from_millis(u64::MAX))
    );
}

#[tokio::test]
async fn payload_and_result_pass_byte_for_byte() {
    let large = format!("\"{}\"", "é🦀\0\u{202e}x".repeat(80_000));
    for payload in ["", "{}", r#"{"n":12345678901234567890,"s":"\ud800 \u0000"}"#, "\0\u{202e}🦀", &large] {
        assert_eq!(Run::guest("echo", payload).alone().await.outcome, GuestOutcome::Completed(payload.into()));
    }
}

#[tokio::test]
async fn a_handler_sees_its_job_and_its_output_is_kept() {
    let run = Run::guest("context", "{\"p\": 1}");
    let GuestOutcome::Completed(seen) = run.alone().await.outcome else { panic!("not completed") };
    let seen: serde_json::Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(seen["id"], run.call.id);
    assert_eq!(seen["job_type"], "tested");
    assert_eq!(seen["payload"], "{\"p\": 1}");
    assert_eq!((&seen["attempt"], &seen["max_attempts"]), (&1.into(), &3.into()));
    assert_eq!(seen["is_cancelled"], false);
    let remaining = seen["remaining_ms"].as_u64().expect("a number");
    assert!(remaining > 0 && remaining <= 120_000, "{remaining}");
    assert_eq!(run.handle.take_progress(), Some((100, "more than all of it".into())));
    assert_eq!(run.handle.take_progress(), None);

    let lines = run.handle.take_lines();
    let told: Vec<_> =
        lines.iter().map(|Line { source, level, message, .. }| (*source, *level, message.as_str())).collect();
    assert_eq!(
        told,
        [
            (Source::Log, Some("debug"), "a debug line"),
            (Source::Log, Some("info"), "an info line"),
            (Source::Log, Some("warn"), "a warning"),
            (Source::Log, Some("error"), "an error line"),
            (Source::Stdout, None, "a line on stdout"),
            (Source::Stderr, None, "a line on stderr"),
        ]
    );
}

#[tokio::test]
async fn a_panic_shows_its_message_and_the_stack() {
    let (report, lines) = Run::guest("panic", r#"{"message":"the printer is on fire"}"#).beside_a_neighbour().await;
    let GuestOutcome::Trapped(text) = &report.outcome else { panic!("{report:?}") };
    let [panic, trap, frame] =
        ["the printer is on fire", "wasm trap: wasm `unreachable` instruction executed", "inner_step"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}")));
    assert!(panic < trap && trap < frame, "{text}");
    assert!(lines.iter().any(|line| line.source == Source::Stderr && line.message.contains("on fire")), "{lines:?}");
}

#[tokio::test]
async fn a_handler_that_calls_exit_fails() {
    let import = r#"(import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))"#;
    for (status, how) in [(0, "with ok"), (1, "with an error")] {
        let run = Run::handler_doing(import, &format!("(call $exit (i32.const {status}))"));
        let GuestOutcome::Failed { message, after: None } = run.alone().await.outcome else { panic!("not failed") };
        assert!(message.contains("called `exit`") && message.contains(how), "{message}");
    }
}

#[tokio::test]
async fn a_guest_that_allocates_out_of_bounds_for_its_payload_traps() {
    let module = r#"(module
        (memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0xfffffff0))
        (func (export "jobq:handler/handler@0.1.0#handle") (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16)))"#;
    let plugin = load(&super::support::handler(module), Metering::Time).expect("a handler");
    let (report, _) = Run::of(plugin, "{}").beside_a_neighbour().await;
    assert!(matches!(report.outcome, GuestOutcome::Trapped(_)), "{report:?}");
}

#[tokio::test]
async fn a_guest_that_returns_a_wild_pointer_traps() {
    let run = Run::handler_doing("", "(return (i32.const 0x7ffffff0))");
    let (report, _) = run.beside_a_neighbour().await;
    assert!(matches!(report.outcome, GuestOutcome::Trapped(_)), "{report:?}");
}

#[tokio::test]
async fn a_core_module_can_be_a_handler() {
    let plugin = guest("core_handler", Metering::Time);
    assert_eq!(plugin.kind(), Kind::Handler);
    let report = Run::of(plugin, r#"{"core":true}"#).alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed(r#"{"core":true}"#.into()));
}

#[tokio::test]
async fn a_trap_in_a_start_function_ends_the_attempt() {
    let (report, _) = Run::guest("trap_start", "{}").beside_a_neighbour().await;
    let GuestOutcome::Trapped(text) = &report.outcome else { panic!("{report:?}") };
    assert!(text.contains("`unreachable`") && text.contains("at trap_at_start"), "{text}");
}
