//! What became of a run: from what wasmtime says to an [`GuestOutcome`].

use std::str::Utf8Error;
use std::time::Duration;

use bytesize::ByteSize;
use thiserror::Error;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::bindings::jobq::handler::types::{DelayedRetry, JobError};
use super::guest_outcome::GuestOutcome;
use super::limits::Limits;
use super::memory::Memory;
use super::output::{Output, Stdout};
use super::plugin::{Answer, Kind};
use super::trace;

/// Why the host itself ended a run.
#[derive(Clone, Copy, Debug, Error)]
pub(super) enum Cut {
    #[error("its time is up")]
    Deadline,
    #[error("it was stopped")]
    Stopped,
}

impl Cut {
    /// The outcome where the guest had not even begun.
    pub(super) fn while_opening_dirs(self) -> GuestOutcome {
        match self {
            Self::Stopped => GuestOutcome::Stopped,
            Self::Deadline => GuestOutcome::TimedOut(
                "opening the directories that `dirs` grants took longer than its time limit".into(),
            ),
        }
    }
}

/// What is known about a run when it has ended.
pub(super) struct Ended<'a> {
    pub(super) kind: Kind,
    pub(super) limits: &'a Limits,
    pub(super) memory: &'a Memory,
    pub(super) output: &'a Output,
    /// Where it was stopped, as lines.
    pub(super) frames: &'a str,
}

impl Ended<'_> {
    pub(super) fn judge(&self, end: wasmtime::Result<Answer>) -> GuestOutcome {
        match end {
            Ok(Answer::Handler(Ok(result))) => self.completed(result),
            Ok(Answer::Handler(Err(error))) => self.declined(error),
            Ok(Answer::Program(Ok(()))) => self.succeeded(),
            Ok(Answer::Program(Err(()))) => self.exited(),
            Err(error) => self.broken(&error),
        }
    }

    fn completed(&self, result: String) -> GuestOutcome {
        match result.len() {
            len if len > self.limits.max_result => self.too_large(len as u64),
            _ => GuestOutcome::Completed(result),
        }
    }

    fn declined(&self, error: JobError) -> GuestOutcome {
        match error {
            JobError::Retry(message) => GuestOutcome::Failed { message: self.clip(message), after: None },
            JobError::RetryAfter(DelayedRetry { message, after_ms }) => {
                GuestOutcome::Failed { message: self.clip(message), after: Some(Duration::from_millis(after_ms)) }
            }
            JobError::Fatal(message) => GuestOutcome::Fatal(self.clip(message)),
            JobError::Snooze(ms) => GuestOutcome::Snoozed(Duration::from_millis(ms)),
        }
    }

    fn succeeded(&self) -> GuestOutcome {
        match self.output.take_stdout() {
            Stdout::TooLarge(total) => self.too_large(total),
            Stdout::Whole(bytes) => match String::from_utf8(bytes) {
                Ok(result) => GuestOutcome::Completed(result),
                Err(error) => not_utf8("the result", error.utf8_error()),
            },
        }
    }

    /// A program that ended with another status than 0, which WASI does not tell.
    fn exited(&self) -> GuestOutcome {
        let mut message = self.output.tail();
        if message.is_empty() {
            message = "the program exited with an error and wrote nothing to stderr".into();
        }
        if let Some(refusal) = self.memory.refusal() {
            message = format!("{message}\n(memory was refused: {refusal})");
        }
        failed(message)
    }

    fn broken(&self, error: &wasmtime::Error) -> GuestOutcome {
        if let Some(cut) = error.downcast_ref::<Cut>() {
            return match cut {
                Cut::Stopped => GuestOutcome::Stopped,
                Cut::Deadline => self.timed_out(),
            };
        }
        if let Some(&I32Exit(status)) = error.downcast_ref() {
            return match (self.kind, status) {
                (Kind::Program, 0) => self.succeeded(),
                (Kind::Program, _) => self.exited(),
                (Kind::Handler, status) => self.left(status),
            };
        }
        if error.is::<PoolConcurrencyLimitError>() {
            return failed(format!("the host had no room for the guest: {error:#}"));
        }
        let trap = error.downcast_ref::<Trap>();
        if trap == Some(&Trap::OutOfFuel) {
            return self.out_of_fuel();
        }
        let gave_up = matches!(trap, None | Some(Trap::UnreachableCodeReached | Trap::MemoryOutOfBounds));
        match self.memory.refusal() {
            Some(refusal) if gave_up => GuestOutcome::OutOfMemory(format!("{refusal}\n{}", self.story(error))),
            _ => self.bad_result(error).unwrap_or_else(|| GuestOutcome::Trapped(self.story(error))),
        }
    }

    fn timed_out(&self) -> GuestOutcome {
        let limit = humantime::format_duration(self.limits.timeout);
        let place = match self.frames {
            "" => ", waiting inside a call of the host".into(),
            frames => format!(", here:{frames}"),
        };
        GuestOutcome::TimedOut(format!("it did not end within its time limit of {limit} and was stopped{place}"))
    }

    fn out_of_fuel(&self) -> GuestOutcome {
        let limit = self.limits.fuel.unwrap_or(u64::MAX);
        GuestOutcome::OutOfFuel(format!("it used up its fuel of {limit}, here:{}", self.frames))
    }

    /// A handler that called `exit` instead of returning.
    fn left(&self, status: i32) -> GuestOutcome {
        let how = if status == 0 { "ok" } else { "an error" };
        let message = format!("the handler called `exit` with {how} instead of returning an answer");
        failed(match self.output.tail() {
            tail if tail.is_empty() => message,
            tail => format!("{tail}\n{message}"),
        })
    }

    /// A guest that came back with something that cannot be read: it was no longer running, so there are no frames.
    fn bad_result(&self, error: &wasmtime::Error) -> Option<GuestOutcome> {
        if error.is::<WasmBacktrace>() {
            return None;
        }
        if let Some(&error) = error.downcast_ref::<Utf8Error>() {
            return Some(not_utf8("the answer of the handler", error));
        }
        let too_large = error.root_cause().to_string().contains("too much data is being copied");
        too_large.then(|| {
            let limit = ByteSize::b(self.limits.max_result as u64);
            failed(format!("the answer of the handler is far larger than `max_result` allows ({limit})"))
        })
    }

    fn too_large(&self, len: u64) -> GuestOutcome {
        let limit = ByteSize::b(self.limits.max_result as u64);
        failed(format!("the result has {len} bytes, more than `max_result` allows ({limit})"))
    }

    fn story(&self, error: &wasmtime::Error) -> String {
        trace::story(&self.output.tail(), error, self.frames)
    }

    /// A message may be as large as a result.
    fn clip(&self, mut message: String) -> String {
        let keep = message.floor_char_boundary(self.limits.max_result);
        if keep < message.len() {
            let more = message.len() - keep;
            message.truncate(keep);
            message.push_str(&format!("… ({more} bytes more)"));
        }
        message
    }
}

fn not_utf8(what: &str, error: Utf8Error) -> GuestOutcome {
    failed(format!("{what} is not UTF-8 text: {error}"))
}

fn failed(message: String) -> GuestOutcome {
    GuestOutcome::Failed { message, after: None }
}
