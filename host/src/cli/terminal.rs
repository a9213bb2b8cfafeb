//! Colour, width, and a line that is redrawn in place. All of it is off without a terminal.

use std::io::{self, IsTerminal, Write};

use comfy_table::Color;

use super::output::cell;
use crate::queue::{Outcome, Status};

/// Whether to colour this stream: it is a capable terminal and `NO_COLOR` is not set.
pub(super) fn has_colour(stream: &impl IsTerminal) -> bool {
    moves_cursor(stream) && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn moves_cursor(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The width of the terminal on stdout; `None` if there is none.
pub(super) fn width() -> Option<u16> {
    columns(io::stdout())
}

fn columns(stream: impl rustix::fd::AsFd + IsTerminal) -> Option<u16> {
    if !stream.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// The colour of a state.
pub(super) const fn of_status(status: Status) -> Color {
    match status {
        Status::Pending => Color::Reset,
        Status::Running => Color::DarkCyan,
        Status::Completed => Color::DarkGreen,
        Status::Failed => Color::DarkYellow,
        Status::Dead => Color::DarkRed,
        Status::Cancelled => Color::DarkGrey,
    }
}

/// The colour of an outcome.
pub(super) const fn of_outcome(outcome: Outcome) -> Color {
    match outcome {
        Outcome::Completed => Color::DarkGreen,
        Outcome::Cancelled | Outcome::Snoozed | Outcome::GivenBack => Color::DarkGrey,
        Outcome::Failed
        | Outcome::Trapped
        | Outcome::TimedOut
        | Outcome::OutOfFuel
        | Outcome::OutOfMemory
        | Outcome::Lost => Color::DarkYellow,
    }
}

/// `word` in the colour of `status`, if stdout is coloured.
pub(super) fn paint(word: &str, status: Status) -> String {
    let code = match of_status(status) {
        Color::DarkCyan => 36,
        Color::DarkGreen => 32,
        Color::DarkYellow => 33,
        Color::DarkRed => 31,
        Color::DarkGrey => 90,
        _ => return word.to_owned(),
    };
    if has_colour(&io::stdout()) { format!("\u{1b}[{code}m{word}\u{1b}[0m") } else { word.to_owned() }
}

/// A line on stderr that is redrawn in place and erased on drop. For terminals only.
pub(super) struct LiveLine {
    frame: usize,
}

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

impl LiveLine {
    /// `None` if stderr is not a capable terminal.
    pub(super) fn on_stderr() -> Option<Self> {
        moves_cursor(&io::stderr()).then(|| Self { frame: 0 })
    }

    /// Redraws the line, cut to the width of the terminal.
    pub(super) fn draw(&mut self, text: &str) {
        let room = usize::from(columns(io::stderr()).unwrap_or(80)).saturating_sub(3);
        self.frame = (self.frame + 1) % FRAMES.len();
        put(&format!("\r\u{1b}[2K{} {}", FRAMES[self.frame], cell(text, room)));
    }
}

impl LiveLine {
    /// Removes the line until it is drawn again.
    pub(super) fn clear(&mut self) {
        put("\r\u{1b}[2K");
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Errors are ignored: the terminal may be gone.
fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
