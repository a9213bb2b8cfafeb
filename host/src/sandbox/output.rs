//! What a guest writes: split into lines, bounded, passed on to the tap.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytesize::ByteSize;

use super::limits::Limits;
use super::plugin::Kind;
use super::secrets::Secrets;
use super::tap::{Line, Source, Tap};

/// The least a line counts, so that empty ones cannot fill the memory of the host.
const LEAST: usize = 16;

/// A line of stdout or stderr is cut here.
const LONGEST_LINE: usize = 16 << 10;

/// Bytes of a progress message that are kept.
const MAX_PROGRESS: usize = 1 << 10;

/// How much of the end of stderr is kept for the message of a failure.
const TAIL: usize = 4 << 10;

/// The output of one attempt, shared by its log, its stdout and its stderr.
pub(super) struct Output {
    tap: Arc<Tap>,
    max_log: usize,
    secrets: Secrets,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    left: usize,
    swallowed: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The end of stderr, kept whatever the limit.
    tail: Vec<u8>,
    tail_is_cut: bool,
    /// Where stdout goes if it is the result of the job.
    result: Option<Collected>,
}

/// The beginning of a program's stdout.
struct Collected {
    bytes: Vec<u8>,
    max: usize,
    total: u64,
}

/// A program's stdout when all of it is there.
pub(super) enum Stdout {
    Whole(Vec<u8>),
    TooLarge(u64),
}

impl Output {
    /// Nothing yet. The stdout of a handler is talk, that of a program is its result: a newline more than the limit is taken.
    pub(super) fn new(kind: Kind, limits: &Limits, secrets: Secrets, tap: Arc<Tap>) -> Self {
        let result = match kind {
            Kind::Handler => None,
            Kind::Program => Some(Collected { bytes: Vec::new(), max: limits.max_result.saturating_add(1), total: 0 }),
        };
        let max_log = limits.max_log;
        Self { tap, max_log, secrets, kept: Mutex::new(Kept { left: max_log, result, ..Kept::default() }) }
    }

    pub(super) fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Takes a message of the log.
    pub(super) fn log(&self, level: &'static str, message: String) {
        let message = self.secrets.redact(message);
        self.kept().line(&self.tap, Source::Log, Some(level), message);
    }

    /// Takes a line of the host itself. There are few of them, so that no limit keeps them out.
    pub(super) fn say(&self, message: String) {
        let message = self.secrets.redact(message);
        self.tap.push(Line { time: SystemTime::now(), source: Source::Log, level: Some("warn"), message });
    }

    /// Takes a report of how far the guest is.
    pub(super) fn progress(&self, percent: u8, message: String) {
        let mut message = self.secrets.redact(message);
        message.truncate(message.floor_char_boundary(MAX_PROGRESS));
        message.shrink_to_fit();
        self.tap.report(percent.min(100), message);
    }

    /// Takes bytes of stdout or stderr.
    pub(super) fn write(&self, source: Source, bytes: &[u8]) {
        let mut kept = self.kept();
        if source == Source::Stderr {
            kept.remember(bytes);
        }
        match (&mut kept.result, source) {
            (Some(result), Source::Stdout) => result.add(bytes),
            _ => kept.text(&self.tap, &self.secrets, source, bytes),
        }
    }

    /// Takes what came without a newline at its end, and says how much was swallowed.
    pub(super) fn finish(&self) {
        let mut kept = self.kept();
        for source in [Source::Stdout, Source::Stderr] {
            let rest = std::mem::take(kept.pending(source));
            if !rest.is_empty() {
                kept.line(&self.tap, source, None, self.secrets.redact(lossy(&rest)));
            }
        }
        let swallowed = std::mem::take(&mut kept.swallowed);
        if swallowed > 0 {
            let limit = ByteSize::b(self.max_log as u64);
            self.say(format!("{swallowed} more bytes of output were not kept: `max_log` is {limit}"));
        }
    }

    /// The last words on stderr, from the beginning of a line where possible.
    pub(super) fn tail(&self) -> String {
        let kept = self.kept();
        let tail = self.secrets.redact(lossy(&kept.tail));
        // What was cut off in front may have been the beginning of a secret.
        let unsure = if kept.tail_is_cut { self.secrets.longest() } else { 0 };
        let cut = tail.ceil_char_boundary(tail.len().saturating_sub(TAIL).max(unsure.min(tail.len())));
        let from = match tail[cut..].find('\n') {
            Some(newline) if cut > 0 => cut + newline + 1,
            _ => cut,
        };
        tail[from..].trim_ascii().to_owned()
    }

    /// Takes a program's stdout.
    pub(super) fn take_stdout(&self) -> Stdout {
        let Some(Collected { mut bytes, max, total }) = self.kept().result.take() else {
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
            // This is no result, and nobody will see it.
            Err(error) => error.into_bytes(),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn pending(&mut self, source: Source) -> &mut Vec<u8> {
        if source == Source::Stderr { &mut self.stderr } else { &mut self.stdout }
    }

    fn text(&mut self, tap: &Tap, secrets: &Secrets, source: Source, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                self.swallowed += bytes.len() as u64;
                return;
            }
            let pending = self.pending(source);
            let room = bytes.len().min(LONGEST_LINE - pending.len());
            let newline = bytes[..room].iter().position(|&byte| byte == b'\n');
            pending.extend_from_slice(&bytes[..newline.unwrap_or(room)]);
            bytes = &bytes[newline.map_or(room, |at| at + 1)..];
            if newline.is_some() || pending.len() == LONGEST_LINE {
                let whole = if newline.is_some() { pending.len() } else { where_to_cut(pending, secrets) };
                let line = secrets.redact(lossy(&pending[..whole]));
                pending.drain(..whole);
                self.line(tap, source, None, line);
            }
        }
    }

    fn line(&mut self, tap: &Tap, source: Source, level: Option<&'static str>, mut message: String) {
        let keep = message.floor_char_boundary(self.left);
        self.swallowed += (message.len() - keep) as u64;
        if self.left == 0 {
            return;
        }
        message.truncate(keep);
        message.shrink_to_fit();
        self.left = self.left.saturating_sub(message.len().max(LEAST));
        tap.push(Line { time: SystemTime::now(), source, level, message });
    }

    fn remember(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(2 * TAIL);
        if skipped > 0 {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&bytes[skipped..]);
        let surplus = if self.tail.len() > 4 * TAIL { self.tail.len() - 2 * TAIL } else { 0 };
        self.tail.drain(..surplus);
        self.tail_is_cut |= skipped + surplus > 0;
    }
}

impl Collected {
    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.max - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where to cut a line that is too long: not within a character, and not within a secret.
fn where_to_cut(bytes: &[u8], secrets: &Secrets) -> usize {
    match bytes.len() - secrets.begun_at_the_end_of(bytes) {
        // The line would be one beginning after the other.
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
