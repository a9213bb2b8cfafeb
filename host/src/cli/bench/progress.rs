//! A line on the terminal that shows what is being measured, because a benchmark can take minutes.

use crate::cli::terminal::LiveLine;

/// The line; it shows nothing without a terminal, and dropping it clears it.
pub(super) struct Progress(Option<LiveLine>);

impl Progress {
    pub(super) fn on_stderr() -> Self {
        Self(LiveLine::on_stderr())
    }

    /// Shows what is being measured.
    pub(super) fn show(&mut self, what: &str) {
        if let Some(line) = &mut self.0 {
            line.draw(what);
        }
    }
}
