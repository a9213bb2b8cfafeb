//! One line on a terminal that says what is being measured; a bench may take minutes.

use crate::cli::terminal::LiveLine;

/// Where there is no terminal, it says nothing. Gone when it is dropped.
pub(super) struct Progress(Option<LiveLine>);

impl Progress {
    pub(super) fn on_stderr() -> Self {
        Self(LiveLine::on_stderr())
    }

    /// Says what comes next.
    pub(super) fn show(&mut self, what: &str) {
        if let Some(line) = &mut self.0 {
            line.draw(what);
        }
    }
}
