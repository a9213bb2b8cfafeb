//! A guest's last moment, as text for the people who wrote it.

use std::sync::Arc;

use wasmtime::{Error, FrameInfo, WasmBacktrace};

use super::debug_info::{Address, DebugInfo, Spot};

/// Bytes of the name of a frame; generic Rust and C++ names grow long.
const LONGEST_NAME: usize = 200;

/// Frames that are told, inlined ones included.
const MOST_FRAMES: usize = 40;

/// What the names of functions begin with that only carry out a panic or an abort.
const MACHINERY: [&str; 4] = ["std::", "core::", "alloc::", "__rustc::"];

/// The functions the guest was in, innermost first, one a line, with file and line where they are known; empty where
/// nothing is.
pub(super) async fn frames(error: &Error, debug_info: Option<&Arc<DebugInfo>>) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let names = names(&backtrace.to_string());
    let spots = spots(addresses(backtrace), debug_info).await;
    let mut frames = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        match spots.get(at) {
            Some(spots) if !spots.is_empty() => frames.extend(spots.iter().map(|spot| Frame::of(&name, spot))),
            _ => frames.push(Frame { name, place: None }),
        }
    }
    let machinery = frames.iter().take_while(|frame| frame.is_machinery()).count();
    let told = if machinery < frames.len() { &frames[machinery..] } else { &frames[..] };
    lines(told)
}

/// One line a frame; a recursion is told once, with how often.
fn lines(frames: &[Frame]) -> String {
    let same = frames.chunk_by(|one, next| one == next).take(MOST_FRAMES);
    let told = same.map(|frames| match frames {
        [frame, rest @ ..] if rest.len() > 1 => format!("{}, and {} times more", frame.line(), rest.len()),
        frames => frames.iter().map(Frame::line).collect(),
    });
    told.collect()
}

/// Looks up lines away from the threads that run guests.
async fn spots(addresses: Vec<Address>, debug_info: Option<&Arc<DebugInfo>>) -> Vec<Vec<Spot>> {
    let Some(debug_info) = debug_info.map(Arc::clone) else { return Vec::new() };
    tokio::task::spawn_blocking(move || debug_info.spots(&addresses)).await.unwrap_or_default()
}

fn addresses(backtrace: &WasmBacktrace) -> Vec<Address> {
    let address = |frame: &FrameInfo| Address {
        module: frame.module().name().map(str::to_owned),
        offset: frame.module_offset().map(|offset| offset as u64),
    };
    backtrace.frames().iter().map(address).collect()
}

/// `Display` is the only place where wasmtime demangles: "    0:   0x3f2 - module!function".
fn names(text: &str) -> Vec<String> {
    let lines = text.lines().skip(1);
    lines.map(|line| readable(line.split_once('!').map_or(line.trim(), |(_, name)| name))).collect()
}

/// A function and where in its source it was.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    name: String,
    place: Option<String>,
}

impl Frame {
    fn of(name: &str, spot: &Spot) -> Self {
        let inlined = spot.function.as_deref().map(readable);
        Self { name: inlined.unwrap_or_else(|| name.to_owned()), place: spot.place.clone() }
    }

    fn is_machinery(&self) -> bool {
        self.name == "abort" || MACHINERY.iter().any(|start| self.name.starts_with(start))
    }

    fn line(&self) -> String {
        let name = &self.name[..self.name.floor_char_boundary(LONGEST_NAME)];
        match &self.place {
            Some(place) => format!("\n  at {name} ({place})"),
            None => format!("\n  at {name}"),
        }
    }
}

/// Without the hashes by which Rust tells apart crates of the same name, `std[28cb60d72c1bce67]::process::abort`, and
/// in older mangling functions, `handler::handle::h0917a8c097853628`.
fn readable(name: &str) -> String {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name);
    let mut parts = name.split('[');
    let mut readable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((hash, rest)) if is_hash(hash) => {
                readable.push_str(rest);
            }
            _ => readable.extend(["[", part]),
        }
    }
    readable
}

/// The last words of the guest, why it ended, and where.
pub(super) fn story(last_words: &str, error: &Error, frames: &str) -> String {
    let cause = error.root_cause();
    if last_words.is_empty() { format!("{cause}{frames}") } else { format!("{last_words}\n{cause}{frames}") }
}

#[cfg(test)]
mod tests {
    use super::{Frame, lines, readable};

    #[test]
    fn hashes_are_left_out_of_names() {
        for (name, expected) in [
            ("std[28cb60d72c1bce67]::process::abort", "std::process::abort"),
            ("panic::inner_step::hb43b080f42c76be1", "panic::inner_step"),
            ("alloc::slice::<impl [T]>::h", "alloc::slice::<impl [T]>::h"),
            ("main.handle", "main.handle"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }

    #[test]
    fn a_recursion_is_told_once() {
        let frame = |name: &str| Frame { name: name.to_owned(), place: None };
        let frames = ["leaf", "deeper", "deeper", "deeper", "twice", "twice", "handle"].map(frame);
        assert_eq!(lines(&frames), "\n  at leaf\n  at deeper, and 2 times more\n  at twice\n  at twice\n  at handle");
    }
}
