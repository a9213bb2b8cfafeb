//! The bad lines of a file, the first few of which make up the failure.

use crate::failure::Failure;
use crate::sales::BadLine;

/// Enough to see what is wrong with a file.
const MAX: usize = 20;

#[derive(Default)]
pub(crate) struct BadLines(Vec<BadLine>);

impl BadLines {
    /// Keeps a line; fails when there are enough.
    pub(crate) fn push(&mut self, bad: BadLine) -> Result<(), Failure> {
        self.0.push(bad);
        if self.0.len() == MAX { Err(self.failure("read no further than these")) } else { Ok(()) }
    }

    /// Fails if there are any.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(self.failure("nothing was added up")) }
    }

    fn failure(&self, outcome: &str) -> Failure {
        let count = self.0.len();
        let mut message = format!("{count} bad {}, {outcome}", if count == 1 { "line" } else { "lines" });
        for bad in &self.0 {
            message += &format!("\n  line {}: {}", bad.line, bad.wrong);
        }
        Failure::Fatal(message)
    }
}
