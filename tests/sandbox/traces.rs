//! Stack traces of traps.

use jobq::sandbox::{GuestOutcome, Metering};
use wat::GenerateDwarf;

use super::support::{PATIENCE, Run, embed, load, module_doing};

/// A handler with debug information that traps in line 7 of its source.
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
async fn frames_show_file_and_line_if_there_is_debug_information() {
    for metering in [Metering::Time, Metering::Fuel] {
        let plugin = load(&handler(), metering).expect("a handler");
        let GuestOutcome::Trapped(text) = Run::of(plugin, "{}").alone().await.outcome else { panic!("not trapped") };
        let frames: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  at ")).collect();
        assert!(frames[0].starts_with("inner (") && frames[0].contains("handler.wat:1"), "{text}");
        assert!(frames[1].starts_with("handle (") && frames[1].contains("handler.wat:"), "{text}");
    }
}

/// A dead file system holds the blocking threads like this.
#[test]
fn a_trap_is_explained_while_all_blocking_threads_hang() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let (alive, dead) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || _ = dead.recv());
    let run = Run::of(load(&handler(), Metering::Time).expect("a handler"), "{}");
    let report = runtime.block_on(async { tokio::time::timeout(PATIENCE, run.alone()).await });
    drop(alive);
    let GuestOutcome::Trapped(text) = report.expect("it keeps nobody's slot").outcome else { panic!("not trapped") };
    assert!(text.contains("handler.wat:"), "{text}");
}

#[tokio::test]
async fn a_trap_without_debug_information_shows_its_functions() {
    let run = Run::handler_doing("(func $inner unreachable)", "(call $inner)");
    let GuestOutcome::Trapped(text) = run.alone().await.outcome else { panic!("not trapped") };
    assert!(text.ends_with("\n  at inner\n  at handle"), "{text}");
}

#[tokio::test]
async fn invalid_debug_information_does_no_harm() {
    let mut wasm = handler();
    let whole = wasm.len();
    // Fills each section of debug information in turn with bytes that cause the most work: rows, and huge numbers.
    for (name, filler) in
        [(".debug_line", 0x20_u8), (".debug_line", 0xff), (".debug_info", 0xff), (".debug_abbrev", 0x01)]
    {
        let at = (0..whole - name.len()).find(|&at| wasm[at..].starts_with(name.as_bytes())).expect("the section");
        let start = at + name.len() + 24;
        wasm[start..start + 16].fill(filler);
        let plugin = load(&wasm, Metering::Time).expect("a handler");
        let (report, _) = Run::of(plugin, "{}").beside_a_neighbour().await;
        let GuestOutcome::Trapped(text) = report.outcome else { panic!("not trapped") };
        assert!(text.contains("\n  at inner"), "{text}");
    }
}

/// A custom section for the end of a module.
fn custom(name: &str, data: &[u8]) -> Vec<u8> {
    let mut content = vec![u8::try_from(name.len()).expect("a short name")];
    content.extend(name.as_bytes());
    content.extend(data);
    let mut section = vec![0];
    let mut length = content.len();
    loop {
        let low = u8::try_from(length & 0x7f).expect("seven bits");
        length >>= 7;
        section.push(if length > 0 { low | 0x80 } else { low });
        if length == 0 {
            break;
        }
    }
    section.extend(content);
    section
}

/// Following inlined functions recursively would overflow the stack.
#[tokio::test]
async fn endlessly_nested_inlined_functions_do_no_harm() {
    const DEPTH: usize = 300_000;
    let whole_range = [0_u32.to_le_bytes(), 0x7fff_ffff_u32.to_le_bytes()].concat();
    // The abbreviations: a unit with lines and a range, a function with a range, an inlined one with its origin.
    let abbreviations = b"\x01\x11\x01\x10\x17\x11\x01\x12\x06\0\0\x02\x2e\x01\x11\x01\x12\x06\0\0\
        \x03\x1d\x01\x11\x01\x12\x06\x31\x13\0\0\0";
    let unit = [&b"\x01"[..], &0_u32.to_le_bytes(), &whole_range, b"\x02", &whole_range].concat();
    let inlined = [&b"\x03"[..], &whole_range, &u32::try_from(11 + unit.len()).expect("small").to_le_bytes()].concat();
    let mut info = [&4_u16.to_le_bytes()[..], &0_u32.to_le_bytes(), b"\x04", &unit].concat();
    info.extend(inlined.repeat(DEPTH));
    info.extend(vec![0; DEPTH + 2]);
    let info = [&u32::try_from(info.len()).expect("32 bits").to_le_bytes()[..], &info].concat();
    let files = b"\x01\x01\x01\xfb\x0e\x0d\0\x01\x01\x01\x01\0\0\0\x01\0\0\x01\0f.c\0\0\0\0\0";
    let rows = b"\0\x05\x02\0\0\0\0\x01\0\x01\x01";
    let size = u32::try_from(files.len()).expect("small").to_le_bytes();
    let lines = [&4_u16.to_le_bytes()[..], &size, files, rows].concat();
    let lines = [&u32::try_from(lines.len()).expect("small").to_le_bytes()[..], &lines].concat();

    let text = module_doing("", "unreachable");
    let mut module = wat::parse_str(&text).expect("the text of a module");
    for (name, data) in [(".debug_abbrev", &abbreviations[..]), (".debug_line", &lines), (".debug_info", &info)] {
        module.extend(custom(name, data));
    }
    let plugin = load(&embed(module), Metering::Time).expect("a handler");
    let GuestOutcome::Trapped(text) = Run::of(plugin, "{}").alone().await.outcome else { panic!("not trapped") };
    assert!(text.contains("\n  at handle"), "{text}");
}

/// Demangled, this C++ name would repeat itself sixteen times on each of fourteen levels.
#[tokio::test]
async fn a_name_that_expands_exponentially_is_shown_mangled() {
    let digit = |number: usize| b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number] as char;
    let parts = (0..14).map(|number| format!("S_I{}E", format!("S{}_", digit(number)).repeat(16)));
    let name = format!("_Z1f1AI{}E{}", "i".repeat(16), parts.collect::<String>());
    let run = Run::handler_doing(&format!("(func ${name} unreachable)"), &format!("(call ${name})"));
    let GuestOutcome::Trapped(text) = run.alone().await.outcome else { panic!("not trapped") };
    assert!(text.contains("\n  at _Z1f1AIiiiiiiiiiiiiiiiiES_IS0_S0_") && text.len() < 1000, "{text}");
}
