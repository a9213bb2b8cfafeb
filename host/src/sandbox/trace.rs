//! A guest's last moment, as text for the people who wrote it.

use wasmtime::{Error, WasmBacktrace};

/// Bytes of the name of a frame; generic Rust and C++ names grow long.
const LONGEST_NAME: usize = 200;

/// The functions the guest was in, innermost first, one a line; empty where that is not known.
pub(super) fn frames(error: &Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    // `Display` is the only place where wasmtime demangles: "    0:   0x3f2 - module!function".
    let text = backtrace.to_string();
    let names = text.lines().skip(1).map(|line| line.split_once('!').map_or(line.trim(), |(_, name)| name));
    names.map(readable).map(|name| format!("\n  at {}", &name[..name.floor_char_boundary(LONGEST_NAME)])).collect()
}

/// Without the hashes that Rust tells crates of the same name apart by: `std[28cb60d72c1bce67]::process::abort`.
fn readable(name: &str) -> String {
    let mut parts = name.split('[');
    let mut readable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((hash, rest)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                readable.push_str(rest);
            }
            _ => readable.extend(["[", part]),
        }
    }
    readable
}

/// The last words of the guest, why it ended, and where.
pub(super) fn story(last_words: &str, error: &Error) -> String {
    let cause = error.root_cause();
    let frames = frames(error);
    if last_words.is_empty() { format!("{cause}{frames}") } else { format!("{last_words}\n{cause}{frames}") }
}
