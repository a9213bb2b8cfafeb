//! What the terminal can do: colour, width, and a line that changes in place. Where there is none, all of it is off.

use std::io::{self, IsTerminal, Write};

use comfy_table::Color;

use super::output::cell;
use crate::queue::{Outcome, Status};

/// Whether this stream takes colour: a terminal that can, and nobody has set `NO_COLOR`.
pub(super) fn has_colour(stream: &impl IsTerminal) -> bool {
    moves_cursor(stream) && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn moves_cursor(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The columns of the terminal that stdout is; `None` where it is none.
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

/// `word` in the colour of `status`, where stdout takes colour.
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

/// One line on stderr that is drawn again and again, and is gone when this is dropped. For a terminal only.
pub(super) struct LiveLine {
    frame: usize,
}

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

impl LiveLine {
    /// `None` where stderr is no terminal that could show it.
    pub(super) fn on_stderr() -> Option<Self> {
        moves_cursor(&io::stderr()).then(|| Self { frame: 0 })
    }

    /// Draws the line anew, cut to the width of the terminal.
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

/// A terminal that has gone away misses nothing.
fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
