//! How an attempt ended: the outcomes, and the one place where a result or trap of wasmtime becomes one.

use std::str::Utf8Error;
use std::time::Duration;

use bytesize::ByteSize;
use thiserror::Error;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::bindings::jobq::handler::types::{DelayedRetry, JobError};
use super::call::Kind;
use super::host_shortage;
use super::limits::Limits;
use super::memory::Memory;
use super::output::{Output, Stdout};
use super::secrets::Secrets;

/// The report on one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptReport {
    /// How it ended.
    pub outcome: GuestOutcome,
    /// Wall clock from the start of the guest.
    pub duration: Duration,
    /// Fuel used; `None` if it isn't counted, or if the guest was interrupted while it computed, which leaves it unknown.
    pub fuel: Option<u64>,
    /// Peak of all memories and tables together, in bytes.
    pub peak_memory: u64,
}

/// How an attempt ended. None of these is an error of the program: a guest, its caller or a busy machine causes each.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestOutcome {
    /// The handler returned a result.
    Completed(String),
    /// The handler returned an error, or its return value was unusable.
    Failed {
        /// What went wrong.
        message: String,
        /// The delay the handler asked for; `None` means the backoff of the type.
        after: Option<Duration>,
    },
    /// The handler returned an error that no further attempt can fix.
    Fatal(String),
    /// The handler asked to be called again after this delay.
    Snoozed(Duration),
    /// The guest trapped; the text has the end of its stderr and its stack frames.
    Trapped(String),
    /// It reached its time limit.
    TimedOut(String),
    /// It used up its fuel.
    OutOfFuel(String),
    /// It wanted more memory than its limit.
    OutOfMemory(String),
    /// The host had no memory, file descriptors or slot left for it. Not the guest's fault.
    HostShortage(String),
    /// It was stopped through its [`AttemptHandle`](super::AttemptHandle).
    Stopped,
}

impl GuestOutcome {
    /// A failure that is retried after the backoff of the type.
    pub(super) fn failed(message: String) -> Self {
        Self::Failed { message, after: None }
    }

    /// Whether the handler said that no further attempt can help.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal(_))
    }

    /// The delay that the handler asked for.
    pub fn requested_delay(&self) -> Option<Duration> {
        match self {
            Self::Failed { after, .. } => *after,
            Self::Snoozed(delay) => Some(*delay),
            _ => None,
        }
    }
}

/// What a guest returned, if it returned at all.
pub(super) enum GuestReturn {
    Handler(Result<String, JobError>),
    Program(Result<(), ()>),
}

impl GuestReturn {
    /// The same without secrets.
    pub(super) fn redacted(self, secrets: &Secrets) -> Self {
        let Self::Handler(returned) = self else { return self };
        Self::Handler(returned.map(|result| secrets.redact_result(result)).map_err(|error| match error {
            JobError::Retry(message) => JobError::Retry(secrets.redact(message)),
            JobError::RetryAfter(DelayedRetry { message, after_ms }) => {
                JobError::RetryAfter(DelayedRetry { message: secrets.redact(message), after_ms })
            }
            JobError::Fatal(message) => JobError::Fatal(secrets.redact(message)),
            JobError::Snooze(ms) => JobError::Snooze(ms),
        }))
    }
}

/// Why the host interrupted a guest.
#[derive(Clone, Copy, Debug, Error)]
pub(super) enum Interrupt {
    #[error("the time limit was reached")]
    Deadline,
    #[error("the attempt was stopped")]
    Stopped,
}

impl Interrupt {
    /// The outcome if the guest hadn't started yet.
    pub(super) fn while_opening_dirs(self) -> GuestOutcome {
        match self {
            Self::Stopped => GuestOutcome::Stopped,
            Self::Deadline => GuestOutcome::TimedOut(
                "opening the directories granted by `dirs` took longer than the time limit".into(),
            ),
        }
    }

    /// Whether it hit a guest in the middle of a computation. Its fuel is in a register then and can't be read.
    pub(super) fn hit_computation(error: &wasmtime::Error) -> bool {
        error.is::<Self>() && error.is::<WasmBacktrace>()
    }
}

/// An attempt that has ended: everything that decides its outcome.
pub(super) struct EndedAttempt<'a> {
    pub(super) kind: Kind,
    pub(super) limits: &'a Limits,
    pub(super) memory: &'a Memory,
    pub(super) output: &'a Output,
    /// The stack at the moment it ended, one line a frame.
    pub(super) frames: &'a str,
}

impl EndedAttempt<'_> {
    /// Turns what wasmtime returned into an outcome.
    pub(super) fn outcome(&self, result: wasmtime::Result<GuestReturn>) -> GuestOutcome {
        match result {
            Ok(GuestReturn::Handler(Ok(result))) => self.handler_returned(result),
            Ok(GuestReturn::Handler(Err(error))) => self.handler_failed(error),
            Ok(GuestReturn::Program(Ok(()))) => self.program_succeeded(),
            Ok(GuestReturn::Program(Err(()))) => self.program_failed(),
            Err(error) => self.interrupted_or_trapped(&error),
        }
    }

    fn handler_returned(&self, result: String) -> GuestOutcome {
        match result.len() {
            len if len > self.limits.max_result => self.result_too_large(len as u64),
            _ => GuestOutcome::Completed(result),
        }
    }

    fn handler_failed(&self, error: JobError) -> GuestOutcome {
        match error {
            JobError::Retry(message) => GuestOutcome::failed(self.truncated(message)),
            JobError::RetryAfter(DelayedRetry { message, after_ms }) => {
                GuestOutcome::Failed { message: self.truncated(message), after: Some(Duration::from_millis(after_ms)) }
            }
            JobError::Fatal(message) => GuestOutcome::Fatal(self.truncated(message)),
            JobError::Snooze(ms) => GuestOutcome::Snoozed(Duration::from_millis(ms)),
        }
    }

    fn program_succeeded(&self) -> GuestOutcome {
        match self.output.take_stdout() {
            Stdout::TooLarge(total) => self.result_too_large(total),
            Stdout::Whole(bytes) => match String::from_utf8(bytes) {
                Ok(result) => GuestOutcome::Completed(result),
                Err(error) => not_utf8("the result", error.utf8_error()),
            },
        }
    }

    /// A program that exited with another status than 0. WASI doesn't pass the status on.
    fn program_failed(&self) -> GuestOutcome {
        let mut message = self.output.tail();
        if message.is_empty() {
            message = "the program exited with an error and wrote nothing to stderr".into();
        }
        if let Some(refusal) = self.memory.refusal() {
            message = format!("{message}\n(memory was refused: {refusal})");
        }
        GuestOutcome::failed(message)
    }

    fn interrupted_or_trapped(&self, error: &wasmtime::Error) -> GuestOutcome {
        if let Some(interrupt) = error.downcast_ref::<Interrupt>() {
            return match interrupt {
                Interrupt::Stopped => GuestOutcome::Stopped,
                Interrupt::Deadline => self.timed_out(),
            };
        }
        if let Some(&I32Exit(status)) = error.downcast_ref() {
            return match (self.kind, status) {
                (Kind::Program, 0) => self.program_succeeded(),
                (Kind::Program, _) => self.program_failed(),
                (Kind::Handler, status) => self.handler_exited(status),
            };
        }
        if host_shortage::stopped_guest(error) {
            return GuestOutcome::HostShortage(format!("the host had no room for the guest: {error:#}"));
        }
        let trap = error.downcast_ref::<Trap>();
        if trap == Some(&Trap::OutOfFuel) {
            return self.out_of_fuel();
        }
        // Guests react to a refused allocation with an abort, or with an access through the null pointer they got.
        let may_be_allocation = matches!(trap, None | Some(Trap::UnreachableCodeReached | Trap::MemoryOutOfBounds));
        match (self.memory.refusal(), self.memory.host_refusal()) {
            (Some(refusal), _) if may_be_allocation => {
                GuestOutcome::OutOfMemory(format!("{refusal}\n{}", self.trap_message(error)))
            }
            (None, Some(refusal)) if may_be_allocation => {
                GuestOutcome::HostShortage(format!("the host had no memory for the guest: {refusal}"))
            }
            _ => self.bad_return(error).unwrap_or_else(|| GuestOutcome::Trapped(self.trap_message(error))),
        }
    }

    fn timed_out(&self) -> GuestOutcome {
        let limit = humantime::format_duration(self.limits.timeout);
        let place = match self.frames {
            "" => " while it waited in a call to the host".into(),
            frames => format!(":{frames}"),
        };
        GuestOutcome::TimedOut(format!("it reached its time limit of {limit}{place}"))
    }

    fn out_of_fuel(&self) -> GuestOutcome {
        let limit = self.limits.fuel.unwrap_or(u64::MAX);
        GuestOutcome::OutOfFuel(format!("it used up its fuel of {limit}:{}", self.frames))
    }

    /// A handler that called `exit` instead of returning.
    fn handler_exited(&self, status: i32) -> GuestOutcome {
        let how = if status == 0 { "ok" } else { "an error" };
        let message = format!("the handler called `exit` with {how} instead of returning");
        GuestOutcome::failed(match self.output.tail() {
            tail if tail.is_empty() => message,
            tail => format!("{tail}\n{message}"),
        })
    }

    /// A return value that can't be read. The guest wasn't running any more, so there are no frames.
    fn bad_return(&self, error: &wasmtime::Error) -> Option<GuestOutcome> {
        if error.is::<WasmBacktrace>() {
            return None;
        }
        if let Some(&error) = error.downcast_ref::<Utf8Error>() {
            return Some(not_utf8("the return value of the handler", error));
        }
        let too_large = error.root_cause().to_string().contains("too much data is being copied");
        too_large.then(|| {
            let limit = ByteSize::b(self.limits.max_result as u64);
            GuestOutcome::failed(format!(
                "the return value of the handler is far larger than `max_result` allows ({limit})"
            ))
        })
    }

    fn result_too_large(&self, len: u64) -> GuestOutcome {
        let limit = ByteSize::b(self.limits.max_result as u64);
        GuestOutcome::failed(format!("the result has {len} bytes, more than `max_result` allows ({limit})"))
    }

    /// The end of stderr, the cause of the trap, and the stack.
    fn trap_message(&self, error: &wasmtime::Error) -> String {
        let (tail, cause, frames) = (self.output.tail(), error.root_cause(), self.frames);
        if tail.is_empty() { format!("{cause}{frames}") } else { format!("{tail}\n{cause}{frames}") }
    }

    /// A message may be as long as a result.
    fn truncated(&self, mut message: String) -> String {
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
    GuestOutcome::failed(format!("{what} is not UTF-8 text: {error}"))
}
