//! A guest's last moment, as text for the people who wrote it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use wasmtime::{Error, FrameInfo, WasmBacktrace};

use super::debug_info::{Address, DebugInfo};
use super::tap::Tap;

/// How long a guest that has ended keeps its slot for the lines of its trace.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of the name of a frame; generic Rust and C++ names grow long.
const LONGEST_NAME: usize = 200;

/// Bytes of the longest mangled name that is worth undoing.
const MOST_MANGLED: usize = 4 << 10;

/// Frames that are told.
const MOST_FRAMES: usize = 40;

/// What the names of functions begin with that only carry out a panic or an abort.
const MACHINERY: [&str; 4] = ["std::", "core::", "alloc::", "__rustc::"];

/// The functions the guest was in, innermost first, one a line, with file and line where they are known; empty where
/// nothing is. Whoever is stopped waits for no lines.
pub(super) async fn frames(error: &Error, debug_info: Option<&Arc<DebugInfo>>, tap: &Tap) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let places = match debug_info {
        Some(debug_info) => in_time(places(addresses(backtrace), Arc::clone(debug_info)), tap).await,
        None => Vec::new(),
    };
    let places = places.into_iter().chain(std::iter::repeat(None));
    let names = backtrace.frames().iter().map(name);
    let frames: Vec<Frame> = names.zip(places).map(|(name, place)| Frame { name, place }).collect();
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

/// What `work` finds, and nothing where that takes too long or somebody loses patience.
async fn in_time<T: Default>(work: impl Future<Output = T>, tap: &Tap) -> T {
    tokio::select! {
        biased;
        () = tap.wait_for_stop() => T::default(),
        found = work => found,
        () = tokio::time::sleep(PATIENCE) => T::default(),
    }
}

/// Looks up lines away from the threads that run guests. Those of the runtime that may block are not the place either:
/// a dead file system may hold all of them.
async fn places(addresses: Vec<Address>, debug_info: Arc<DebugInfo>) -> Vec<Option<String>> {
    let (found, places) = oneshot::channel();
    let look_up = move || {
        let places = debug_info.places(&addresses, || !found.is_closed());
        _ = found.send(places);
    };
    match std::thread::Builder::new().name("trace".into()).spawn(look_up) {
        Ok(_) => places.await.unwrap_or_default(),
        Err(error) => {
            tracing::warn!("a trap is told without its lines: no thread to look them up: {error}");
            Vec::new()
        }
    }
}

fn addresses(backtrace: &WasmBacktrace) -> Vec<Address> {
    let address = |frame: &FrameInfo| Address {
        module: frame.module().name().map(str::to_owned),
        offset: frame.module_offset().map(|offset| offset as u64),
    };
    backtrace.frames().iter().map(address).collect()
}

/// The function of a frame as people know it.
fn name(frame: &FrameInfo) -> String {
    match frame.func_name() {
        Some(name) => readable(name),
        None => format!("<wasm function {}>", frame.func_index()),
    }
}

/// A function and where in its source it was.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    name: String,
    place: Option<String>,
}

impl Frame {
    fn is_machinery(&self) -> bool {
        self.name == "abort" || MACHINERY.iter().any(|start| self.name.starts_with(start))
    }

    fn line(&self) -> String {
        let name = &self.name;
        match &self.place {
            Some(place) => format!("\n  at {name} ({})", short(place)),
            None => format!("\n  at {name}"),
        }
    }
}

/// Rust's own mangling is undone, without the hashes by which it tells apart crates of the same name; linkers have undone
/// that of C++ before, and doing so here could take for ever: its names may say themselves many times over.
fn readable(name: &str) -> String {
    match rustc_demangle::try_demangle(short_enough(name)) {
        Ok(name) => short(&format!("{name:#}")),
        Err(_) => short(&without_hashes(name)),
    }
}

/// Nothing, for a name beyond all that a compiler makes.
fn short_enough(name: &str) -> &str {
    if name.len() > MOST_MANGLED { "" } else { name }
}

/// Cut to what fits a line, and made to stay within it.
fn short(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(LONGEST_NAME)];
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// As linkers leave Rust's names: `std[28cb60d72c1bce67]::process::abort`.
fn without_hashes(name: &str) -> String {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name);
    let mut parts = name.split('[');
    let mut readable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((hash, rest)) if is_hash(hash) => readable.push_str(rest),
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
    use super::{Frame, Tap, in_time, lines, readable};

    #[tokio::test]
    async fn a_look_up_that_does_not_end_is_left_after_a_while_and_at_a_stop() {
        let tap = Tap::default();
        assert_eq!(in_time(std::future::ready(7), &tap).await, 7);
        assert_eq!(in_time(std::future::pending::<u32>(), &tap).await, 0);
        tap.stop();
        let unasked = std::future::poll_fn(|_| panic!("nobody wants it"));
        assert_eq!(in_time::<u32>(unasked, &tap).await, 0);
    }

    #[test]
    fn hashes_are_left_out_of_names() {
        for (name, expected) in [
            ("std[28cb60d72c1bce67]::process::abort", "std::process::abort"),
            ("panic::inner_step::hb43b080f42c76be1", "panic::inner_step"),
            ("alloc::slice::<impl [T]>::h", "alloc::slice::<impl [T]>::h"),
            ("main.handle", "main.handle"),
            ("_ZN5panic10inner_step17hb43b080f42c76be1E", "panic::inner_step"),
            ("_ZN3foo3barEv", "_ZN3foo3barEv"),
            ("a\n  at forged", "a   at forged"),
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
