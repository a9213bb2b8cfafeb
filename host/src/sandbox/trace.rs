//! The stack of a guest at the moment it trapped or was stopped, as text for its author.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use wasmtime::{Error, FrameInfo, WasmBacktrace};

use super::attempt_handle::AttemptHandle;
use super::debug_info::{Address, DebugInfo};

/// How long a guest that has ended keeps its slot while its source lines are looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the name of a frame; generic Rust and C++ names grow long.
const MAX_NAME: usize = 200;

/// Longer mangled names, in bytes, are not demangled.
const MAX_MANGLED: usize = 4 << 10;

/// Frames that are shown.
const MAX_FRAMES: usize = 40;

/// Prefixes of the functions that only carry out a panic or an abort.
const PANIC_MACHINERY: [&str; 4] = ["std::", "core::", "alloc::", "__rustc::"];

/// The functions that the guest was in, innermost first, one per line, with file and line if known. Empty without a
/// backtrace. Lines are not looked up for an attempt that was stopped.
pub(super) async fn frames(error: &Error, debug_info: Option<&Arc<DebugInfo>>, handle: &AttemptHandle) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let locations = match debug_info {
        Some(debug_info) => in_time(locations(addresses(backtrace), Arc::clone(debug_info)), handle).await,
        None => Vec::new(),
    };
    let locations = locations.into_iter().chain(std::iter::repeat(None));
    let names = backtrace.frames().iter().map(name);
    let frames: Vec<Frame> = names.zip(locations).map(|(name, location)| Frame { name, location }).collect();
    let machinery = frames.iter().take_while(|frame| frame.is_machinery()).count();
    let shown = if machinery < frames.len() { &frames[machinery..] } else { &frames[..] };
    lines(shown)
}

/// One line per frame. Repeated frames of a recursion become one line with a count.
fn lines(frames: &[Frame]) -> String {
    let same = frames.chunk_by(|one, next| one == next).take(MAX_FRAMES);
    let lines = same.map(|frames| match frames {
        [frame, rest @ ..] if rest.len() > 1 => format!("{}, and {} more times", frame.line(), rest.len()),
        frames => frames.iter().map(Frame::line).collect(),
    });
    lines.collect()
}

/// The output of `work`, or the default if it takes too long or the attempt is stopped.
async fn in_time<T: Default>(work: impl Future<Output = T>, handle: &AttemptHandle) -> T {
    tokio::select! {
        biased;
        () = handle.wait_for_stop() => T::default(),
        found = work => found,
        () = tokio::time::sleep(LOOKUP_TIMEOUT) => T::default(),
    }
}

/// Looks up source locations on a thread of its own. On the runtime it would hold up guests, and the runtime's blocking
/// threads may all hang in a dead file system.
async fn locations(addresses: Vec<Address>, debug_info: Arc<DebugInfo>) -> Vec<Option<String>> {
    let (sender, locations) = oneshot::channel();
    let look_up = move || {
        let found = debug_info.locations(&addresses, || !sender.is_closed());
        _ = sender.send(found);
    };
    match std::thread::Builder::new().name("trace".into()).spawn(look_up) {
        Ok(_) => locations.await.unwrap_or_default(),
        Err(error) => {
            tracing::warn!("a trap is shown without source lines, because no thread could be started: {error}");
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

/// The readable name of a frame's function.
fn name(frame: &FrameInfo) -> String {
    match frame.func_name() {
        Some(name) => readable(name),
        None => format!("<wasm function {}>", frame.func_index()),
    }
}

/// A function, and its location in the source.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    name: String,
    location: Option<String>,
}

impl Frame {
    fn is_machinery(&self) -> bool {
        self.name == "abort" || PANIC_MACHINERY.iter().any(|prefix| self.name.starts_with(prefix))
    }

    fn line(&self) -> String {
        let name = &self.name;
        match &self.location {
            Some(location) => format!("\n  at {name} ({})", on_one_line(location)),
            None => format!("\n  at {name}"),
        }
    }
}

/// Demangles Rust names, without the hashes that distinguish crates of the same name. Linkers demangle C++ names already;
/// doing that here could take forever, because such a name can repeat parts of itself exponentially.
fn readable(name: &str) -> String {
    let mangled = if name.len() > MAX_MANGLED { "" } else { name };
    match rustc_demangle::try_demangle(mangled) {
        Ok(name) => on_one_line(&format!("{name:#}")),
        Err(_) => on_one_line(&without_hashes(name)),
    }
}

/// Truncates a text and replaces its control characters.
fn on_one_line(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_NAME)];
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Removes the hashes that linkers leave in Rust names: `std[28cb60d72c1bce67]::process::abort`.
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

#[cfg(test)]
mod tests {
    use super::{AttemptHandle, Frame, in_time, lines, readable};

    #[tokio::test]
    async fn a_lookup_that_hangs_is_abandoned_after_a_timeout_and_on_stop() {
        let handle = AttemptHandle::default();
        assert_eq!(in_time(std::future::ready(7), &handle).await, 7);
        assert_eq!(in_time(std::future::pending::<u32>(), &handle).await, 0);
        handle.stop();
        let unasked = std::future::poll_fn(|_| panic!("the lookup was started after the stop"));
        assert_eq!(in_time::<u32>(unasked, &handle).await, 0);
    }

    #[test]
    fn names_are_shown_without_hashes() {
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
    fn a_recursion_is_shown_once() {
        let frame = |name: &str| Frame { name: name.to_owned(), location: None };
        let frames = ["leaf", "deeper", "deeper", "deeper", "twice", "twice", "handle"].map(frame);
        assert_eq!(lines(&frames), "\n  at leaf\n  at deeper, and 2 more times\n  at twice\n  at twice\n  at handle");
    }
}
