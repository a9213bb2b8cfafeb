//! What a guest writes: split into lines, limited, and passed on to the attempt's handle.

use std::sync::Arc;
use std::time::SystemTime;

use bytesize::ByteSize;
use parking_lot::{Mutex, MutexGuard};

use super::attempt_handle::{AttemptHandle, Line, Source};
use super::call::Kind;
use super::limits::Limits;
use super::secrets::Secrets;

/// Every line counts as at least this many bytes, so that empty lines can't fill the host's memory.
const MIN_LINE: usize = 16;

/// Longer lines of stdout or stderr are split.
const MAX_LINE: usize = 16 << 10;

/// Bytes of a progress message that are kept.
const MAX_PROGRESS: usize = 1 << 10;

/// Bytes of the end of stderr that are kept for error messages.
const TAIL: usize = 4 << 10;

/// The output of one attempt, shared by its log, its stdout and its stderr.
pub(super) struct Output {
    handle: Arc<AttemptHandle>,
    max_log: usize,
    secrets: Secrets,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    left: usize,
    dropped: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The end of stderr, kept regardless of the limit.
    tail: Vec<u8>,
    tail_is_truncated: bool,
    /// Collects stdout if it is the result of the job.
    result: Option<CollectedStdout>,
}

/// A program's stdout up to its limit.
struct CollectedStdout {
    bytes: Vec<u8>,
    max: usize,
    total: u64,
}

/// The complete stdout of a program.
pub(super) enum Stdout {
    Whole(Vec<u8>),
    TooLarge(u64),
}

impl Output {
    /// No output yet. The stdout of a handler is logged, that of a program is its result; a newline beyond the limit is accepted.
    pub(super) fn new(kind: Kind, limits: &Limits, secrets: Secrets, handle: Arc<AttemptHandle>) -> Self {
        let result = match kind {
            Kind::Handler => None,
            Kind::Program => {
                Some(CollectedStdout { bytes: Vec::new(), max: limits.max_result.saturating_add(1), total: 0 })
            }
        };
        let max_log = limits.max_log;
        Self { handle, max_log, secrets, kept: Mutex::new(Kept { left: max_log, result, ..Kept::default() }) }
    }

    pub(super) fn handle(&self) -> &AttemptHandle {
        &self.handle
    }

    /// Adds a message of the `log` import.
    pub(super) fn log(&self, level: &'static str, message: String) {
        let message = self.secrets.redact(message);
        self.kept().line(&self.handle, Source::Log, Some(level), message);
    }

    /// Adds a warning of the host itself. There are few of them, so the limit doesn't apply.
    pub(super) fn warn(&self, message: String) {
        let message = self.secrets.redact(message);
        self.handle.push(Line { time: SystemTime::now(), source: Source::Log, level: Some("warn"), message });
    }

    /// Sets the progress of the guest.
    pub(super) fn progress(&self, percent: u8, message: String) {
        let mut message = self.secrets.redact(message);
        message.truncate(message.floor_char_boundary(MAX_PROGRESS));
        message.shrink_to_fit();
        self.handle.report(percent.min(100), message);
    }

    /// Adds bytes of stdout or stderr.
    pub(super) fn write(&self, source: Source, bytes: &[u8]) {
        let mut kept = self.kept();
        if source == Source::Stderr {
            kept.remember(bytes);
        }
        match (&mut kept.result, source) {
            (Some(result), Source::Stdout) => result.add(bytes),
            _ => kept.text(&self.handle, &self.secrets, source, bytes),
        }
    }

    /// Adds the last lines without a newline, and a warning if output was dropped.
    pub(super) fn finish(&self) {
        let mut kept = self.kept();
        for source in [Source::Stdout, Source::Stderr] {
            let rest = std::mem::take(kept.pending(source));
            if !rest.is_empty() {
                kept.line(&self.handle, source, None, self.secrets.redact(lossy(&rest)));
            }
        }
        let dropped = std::mem::take(&mut kept.dropped);
        if dropped > 0 {
            let limit = ByteSize::b(self.max_log as u64);
            self.warn(format!("{dropped} more bytes of output were not kept: `max_log` is {limit}"));
        }
    }

    /// The end of stderr, from the beginning of a line if possible.
    pub(super) fn tail(&self) -> String {
        let kept = self.kept();
        let tail = self.secrets.redact(lossy(&kept.tail));
        // The part that was cut off may have been the beginning of a secret.
        let unsure = if kept.tail_is_truncated { self.secrets.longest() } else { 0 };
        let cut = tail.ceil_char_boundary(tail.len().saturating_sub(TAIL).max(unsure.min(tail.len())));
        let from = match tail[cut..].find('\n') {
            Some(newline) if cut > 0 => cut + newline + 1,
            _ => cut,
        };
        tail[from..].trim_ascii().to_owned()
    }

    /// Takes a program's stdout.
    pub(super) fn take_stdout(&self) -> Stdout {
        let Some(CollectedStdout { mut bytes, max, total }) = self.kept().result.take() else {
            return Stdout::Whole(Vec::new());
        };
        if total == bytes.len() as u64 && bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if total > max as u64 || bytes.len() >= max {
            return Stdout::TooLarge(total);
        }
        Stdout::Whole(match String::from_utf8(bytes) {
            Ok(result) => self.secrets.redact_result(result).into_bytes(),
            // Not a result, so it isn't shown.
            Err(error) => error.into_bytes(),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }
}

impl Kept {
    fn pending(&mut self, source: Source) -> &mut Vec<u8> {
        if source == Source::Stderr { &mut self.stderr } else { &mut self.stdout }
    }

    fn text(&mut self, handle: &AttemptHandle, secrets: &Secrets, source: Source, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                self.dropped += bytes.len() as u64;
                return;
            }
            let pending = self.pending(source);
            let room = bytes.len().min(MAX_LINE - pending.len());
            let newline = bytes[..room].iter().position(|&byte| byte == b'\n');
            pending.extend_from_slice(&bytes[..newline.unwrap_or(room)]);
            bytes = &bytes[newline.map_or(room, |at| at + 1)..];
            if newline.is_some() || pending.len() == MAX_LINE {
                let whole = if newline.is_some() { pending.len() } else { split_point(pending, secrets) };
                let line = secrets.redact(lossy(&pending[..whole]));
                pending.drain(..whole);
                self.line(handle, source, None, line);
            }
        }
    }

    fn line(&mut self, handle: &AttemptHandle, source: Source, level: Option<&'static str>, mut message: String) {
        let keep = message.floor_char_boundary(self.left);
        self.dropped += (message.len() - keep) as u64;
        if self.left == 0 {
            return;
        }
        message.truncate(keep);
        message.shrink_to_fit();
        self.left = self.left.saturating_sub(message.len().max(MIN_LINE));
        handle.push(Line { time: SystemTime::now(), source, level, message });
    }

    fn remember(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(2 * TAIL);
        if skipped > 0 {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&bytes[skipped..]);
        let surplus = if self.tail.len() > 4 * TAIL { self.tail.len() - 2 * TAIL } else { 0 };
        self.tail.drain(..surplus);
        self.tail_is_truncated |= skipped + surplus > 0;
    }
}

impl CollectedStdout {
    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.max - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where to split a line that is too long: not inside a character and not inside a secret.
fn split_point(bytes: &[u8], secrets: &Secrets) -> usize {
    match bytes.len() - secrets.partial_at_end_of(bytes) {
        // The whole line could be the beginning of a secret.
        0 => bytes.len(),
        cut => whole_characters(&bytes[..cut]),
    }
}

fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}
