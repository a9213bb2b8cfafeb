//! What a trap tells of the guest's source.

use jobq::sandbox::{Metering, Outcome};
use wat::GenerateDwarf;

use super::support::{Run, embed, load, module_doing};

/// A handler with debug information that traps in line 7 of its source, which it has not opened itself.
fn handler() -> Vec<u8> {
    let text = module_doing(
        "",
        "
        (call $inner)",
    );
    let text = format!("{}\n  (func $inner\n    unreachable))", text.trim_end().strip_suffix(')').expect("a module"));
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(GenerateDwarf::Full);
    embed(parser.parse_str(Some("shop/handler.wat".as_ref()), &text).expect("the text of a module"))
}

#[tokio::test]
async fn frames_tell_file_and_line_where_there_is_debug_information() {
    for metering in [Metering::Time, Metering::Fuel] {
        let plugin = load(&handler(), metering).expect("a handler");
        let Outcome::Trapped(text) = Run::of(plugin, "{}").alone().await.outcome else { panic!("not trapped") };
        let frames: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  at ")).collect();
        assert!(frames[0].starts_with("inner (") && frames[0].contains("handler.wat:1"), "{text}");
        assert!(frames[1].starts_with("handle (") && frames[1].contains("handler.wat:"), "{text}");
    }
}

#[tokio::test]
async fn a_trap_without_debug_information_tells_its_functions() {
    let run = Run::handler_doing("(func $inner unreachable)", "(call $inner)");
    let Outcome::Trapped(text) = run.alone().await.outcome else { panic!("not trapped") };
    assert!(text.ends_with("\n  at inner\n  at handle"), "{text}");
}

#[tokio::test]
async fn debug_information_that_makes_no_sense_does_no_harm() {
    let mut wasm = handler();
    let whole = wasm.len();
    // Each section of debug information in turn is filled with bytes that mean the most work: rows, and huge numbers.
    for (name, filler) in
        [(".debug_line", 0x20_u8), (".debug_line", 0xff), (".debug_info", 0xff), (".debug_abbrev", 0x01)]
    {
        let at = (0..whole - name.len()).find(|&at| wasm[at..].starts_with(name.as_bytes())).expect("the section");
        let start = at + name.len() + 24;
        wasm[start..start + 16].fill(filler);
        let plugin = load(&wasm, Metering::Time).expect("a handler");
        let (report, _) = Run::of(plugin, "{}").beside_a_neighbour().await;
        let Outcome::Trapped(text) = report.outcome else { panic!("not trapped") };
        assert!(text.contains("\n  at inner"), "{text}");
    }
}
