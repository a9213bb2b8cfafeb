//! The two ways in which an attempt fails.

use std::fmt;

/// Why there are no totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// May pass: try again later.
    Retry(String),
    /// Will be the same next time.
    Fatal(String),
}

impl Failure {
    /// The same, with the name of the file in front.
    pub fn in_file(self, path: &str) -> Failure {
        match self {
            Failure::Retry(message) => Failure::Retry(format!("{path}: {message}")),
            Failure::Fatal(message) => Failure::Fatal(format!("{path}: {message}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Retry(message) | Failure::Fatal(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Failure {}
