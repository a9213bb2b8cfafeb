//! Exit codes, and errors that carry one.

use std::process::ExitCode;

use thiserror::Error;

use super::render::paragraph;
use super::{log, output, terminal};
use crate::config::{ConfigError, Look};
use crate::queue::{OpenError, StoreError};

/// What an exit code means. A contract: scripts rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Ok = 0,
    /// Something unexpected, such as a test case that failed.
    Unexpected = 1,
    /// The command line, the settings or the input are wrong.
    Usage = 2,
    /// No such job, type, queue or file.
    NotFound = 3,
    /// The state of a job, or something that exists, forbids it.
    Conflict = 4,
    /// `check` has found problems, or a plugin cannot be loaded.
    Problems = 5,
    /// `plugin run` ended in a retry or a snooze.
    TryLater = 75,
    /// The awaited job died; `plugin run` ended in a fatal answer, a trap or a limit.
    Died = 100,
    /// The awaited job was cancelled.
    Cancelled = 101,
    /// The wait timed out.
    TimedOut = 124,
    /// Ctrl-C ended the wait, as it ends any other command.
    Interrupted = 130,
}

/// The exit codes, for `--help`.
pub const HELP: &str = "\
Exit codes:
  0 ok · 1 unexpected · 2 usage · 3 not found · 4 conflict with a state or an existing thing
  5 check found problems or a plugin cannot be loaded · 75 `plugin run` ended in retry or snooze
  100 the awaited job died, or `plugin run` ended in fatal, trap or limit
  101 the awaited job was cancelled · 124 the wait timed out · 130 interrupted";

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// An error that knows its exit code, and a hint where the user can act on it.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// An error with its code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Adds what the user can do.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The message and what the user can do.
    pub(super) fn in_one_line(&self) -> String {
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
        format!("{}{hint}", self.message)
    }

    /// Wrong input.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }
}

/// Prints an error with its causes on stderr and returns its exit code.
pub(super) fn report(error: &anyhow::Error) -> Code {
    if let Some(error) = error.downcast_ref::<ConfigError>() {
        report_settings(error);
        return Code::Usage;
    }
    let message = match error.downcast_ref::<StoreError>() {
        Some(StoreError::Refused(reason)) if error.chain().count() == 1 => refused(reason),
        _ => format!("{error:#}"),
    };
    report_error(&message, error.downcast_ref::<Failure>().and_then(|failure| failure.hint.as_deref()));
    code_of(error)
}

/// Rephrases what SQLite says about a row that it refused.
fn refused(reason: &str) -> String {
    let rules = [
        ("CHECK constraint failed: ", "the table doesn't allow this job: it requires"),
        ("UNIQUE constraint failed: ", "the table doesn't allow this job: another one has the same"),
        ("NOT NULL constraint failed: ", "the table doesn't allow this job: it has no"),
        ("FOREIGN KEY constraint failed", "a table of the application refers to this job by a foreign key"),
    ];
    let rule = rules.iter().find_map(|(prefix, text)| Some((text, reason.strip_prefix(prefix)?)));
    match rule {
        Some((text, "")) => (*text).to_owned(),
        Some((text, rule)) => format!("{text} `{rule}`"),
        None => format!("the database refused this: {reason}"),
    }
}

/// Prints an error and a hint on stderr.
pub(super) fn report_error(message: &str, hint: Option<&str>) {
    if log::is_json() {
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        return log::say_error(format!("{message}{hint}"));
    }
    let colour = terminal::has_colour(&std::io::stderr());
    let label = |word: &str, code: u8| if colour { format!("\u{1b}[{code}m{word}\u{1b}[0m") } else { word.to_owned() };
    output::talk(format!("{} {}", label("error:", 31), paragraph(message)));
    if let Some(hint) = hint {
        output::talk(format!("{} {}", label("hint:", 36), paragraph(hint)));
    }
}

/// Prints every problem of the settings on stderr.
pub(super) fn report_settings(error: &ConfigError) {
    let look = if terminal::has_colour(&std::io::stderr()) { Look::Colour } else { Look::Plain };
    log::say_error(error.render(look).trim_end_matches('\n'));
}

/// The exit code of an error.
pub(super) fn code_of(error: &anyhow::Error) -> Code {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code;
    }
    if let Some(error) = error.downcast_ref::<OpenError>() {
        return match error {
            OpenError::NoDatabase { .. } | OpenError::NoTable { .. } => Code::NotFound,
            OpenError::ForeignTable { .. } | OpenError::Newer { .. } => Code::Conflict,
            _ => Code::Unexpected,
        };
    }
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::Refused(_)) => Code::Usage,
        _ => Code::Unexpected,
    }
}
