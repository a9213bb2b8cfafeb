//! The memory limit: all memories and tables together.

use jobq::sandbox::GuestOutcome;

use super::support::{MIB, Run};

fn assert_out_of_memory(outcome: &GuestOutcome, figures: &str) {
    let GuestOutcome::OutOfMemory(text) = outcome else { panic!("{outcome:?}") };
    assert!(text.contains(figures), "{text}");
}

#[tokio::test]
async fn a_guest_over_its_limit_is_out_of_memory() {
    let (report, _) = Run::guest("hog", r#"{"mib":200}"#).memory(64 * MIB).beside_a_neighbour().await;
    assert_out_of_memory(&report.outcome, "its memory limit of 64.0 MiB and asked for ");
    assert!(report.peak_memory > 60 * MIB as u64 && report.peak_memory <= 64 * MIB as u64, "{report:?}");
}

#[tokio::test]
async fn a_guest_within_its_limit_completes() {
    let report = Run::guest("hog", r#"{"mib":20}"#).alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed("20".into()));
    assert!(report.peak_memory >= 20 * MIB as u64 && report.peak_memory < 40 * MIB as u64, "{report:?}");
}

/// Grows by 10 MiB six times, whether or not that succeeds, and then does `end`.
fn growing(memories: &str, grow: &str, end: &str) -> Run {
    let fields = format!("{memories} (global $left (mut i32) (i32.const 6))");
    let body = format!(
        "(loop {grow}
            (global.set 0 (i32.sub (global.get 0) (i32.const 1)))
            (br_if 0 (i32.gt_s (global.get 0) (i32.const 0))))
         {end}"
    );
    Run::handler_doing(&fields, &body)
}

#[tokio::test]
async fn a_guest_that_survives_a_refused_growth_completes() {
    let run = growing("", "(drop (memory.grow (i32.const 160)))", "").memory(32 * MIB);
    let report = run.alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed(String::new()));
    assert_eq!(report.peak_memory, 30 * MIB as u64 + (64 << 10));
}

#[tokio::test]
async fn a_trap_after_a_refused_growth_is_out_of_memory() {
    let run = growing("", "(drop (memory.grow (i32.const 160)))", "unreachable").memory(32 * MIB);
    let (report, _) = run.beside_a_neighbour().await;
    assert_out_of_memory(
        &report.outcome,
        "it held 30.1 MiB of its memory limit of 32.0 MiB and asked for 10.0 MiB more",
    );
}

#[tokio::test]
async fn all_memories_count_towards_the_limit() {
    let grow = "(drop (memory.grow 1 (i32.const 160))) (drop (memory.grow 2 (i32.const 160)))";
    let run = growing("(memory 1) (memory 1)", grow, "unreachable").memory(32 * MIB);
    let (report, _) = run.beside_a_neighbour().await;
    assert_out_of_memory(&report.outcome, "of its memory limit of 32.0 MiB");
    assert!(report.peak_memory <= 32 * MIB as u64, "{report:?}");
}

#[tokio::test]
async fn tables_count_as_memory() {
    let table = "(table 1 funcref)";
    let grow = "(drop (table.grow 0 (ref.null func) (i32.const 3000)))";
    let run = growing(table, grow, "unreachable").memory(128 << 10);
    let (report, _) = run.beside_a_neighbour().await;
    assert_out_of_memory(&report.outcome, "of its memory limit of 128.0 KiB and asked for 23.4 KiB more");
}

/// How much memory a guest gets that grows until it is refused.
async fn got(name: &str, memory: usize) -> usize {
    let (report, _) = Run::guest(name, "{}").memory(memory).beside_a_neighbour().await;
    let GuestOutcome::Completed(got) = &report.outcome else { panic!("{report:?}") };
    assert!(report.peak_memory <= memory as u64, "{report:?}");
    got.parse().expect("a number")
}

#[tokio::test]
async fn all_memories_together_stay_within_the_limit() {
    assert_eq!(got("hog_memories", 64 * MIB).await, 63);
}

#[tokio::test]
async fn all_tables_together_stay_within_the_limit() {
    assert_eq!(got("hog_tables", (64 << 10) + 3 * 80_000).await, 30);
    assert_eq!(got("hog_tables", 64 * MIB).await, 80, "four tables of 20,000");
}

#[tokio::test]
async fn a_guest_finds_no_data_of_the_previous_one() {
    let check_and_soil = "(drop (memory.grow (i32.const 200)))
        (loop
            (if (i64.ne (i64.load (global.get $at)) (i64.const 0)) (then unreachable))
            (global.set $at (i32.add (global.get $at) (i32.const 4096)))
            (br_if 0 (i32.lt_u (global.get $at) (i32.const 13000000))))
        (memory.fill (i32.const 1024) (i32.const 0xff) (i32.const 13000000))";
    let run = Run::handler_doing("(global $at (mut i32) (i32.const 4096))", check_and_soil);
    for _ in 0..200 {
        assert_eq!(run.alone().await.outcome, GuestOutcome::Completed(String::new()));
    }
}

#[tokio::test]
async fn tables_have_a_limit_of_their_own() {
    let grow = "(drop (table.grow 0 (ref.null func) (i32.const 1000000)))";
    let (report, _) = growing("(table 1 funcref)", grow, "unreachable").beside_a_neighbour().await;
    assert_out_of_memory(&report.outcome, "a table of 1000001 elements, more than the maximum of 20000");
}

#[tokio::test]
async fn an_initial_memory_over_the_limit_is_out_of_memory() {
    let run = Run::handler_doing("(memory 1000)", "").memory(32 * MIB);
    assert!(run.plugin.minimum_memory() > 60 * MIB as u64);
    let (report, _) = run.beside_a_neighbour().await;
    assert_out_of_memory(&report.outcome, "its memory limit of 32.0 MiB and asked for 62.5 MiB more");
}

/// wasmtime reports growths beyond 4 GiB as failed without asking first. They must not be subtracted.
#[tokio::test]
async fn absurd_growths_do_not_free_memory() {
    let grow = "(drop (memory.grow (i32.const 160))) (drop (memory.grow (i32.const 0x7fffffff)))";
    let report = growing("", grow, "").memory(32 * MIB).alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed(String::new()));
    assert_eq!(report.peak_memory, 30 * MIB as u64 + (64 << 10));
}

#[tokio::test]
async fn reaching_the_guests_own_maximum_is_not_out_of_memory() {
    let run = growing("(memory $own 1 2)", "(drop (memory.grow $own (i32.const 160)))", "unreachable");
    let report = run.alone().await;
    assert!(matches!(report.outcome, GuestOutcome::Trapped(_)), "{report:?}");
}

#[tokio::test]
async fn endless_recursion_is_a_trap() {
    let (report, _) = Run::guest("recurse", "{}").beside_a_neighbour().await;
    let GuestOutcome::Trapped(text) = &report.outcome else { panic!("{report:?}") };
    assert!(text.contains("call stack exhausted"), "{text}");
    assert!(text.len() < 16 << 10, "{} bytes", text.len());
}

#[tokio::test]
async fn the_number_of_handles_is_limited() {
    let (report, _) = Run::guest("leak_handles", "{}").beside_a_neighbour().await;
    assert!(matches!(report.outcome, GuestOutcome::Trapped(_)), "{report:?}");
}

#[tokio::test]
async fn no_host_call_fills_the_memory_of_the_host() {
    let (report, _) = Run::guest("random_flood", "{}").beside_a_neighbour().await;
    assert!(matches!(report.outcome, GuestOutcome::Trapped(_)), "{report:?}");
}
