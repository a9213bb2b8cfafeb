//! The two ways in which an attempt fails.

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// May pass: try again later.
    Retry(String),
    /// Will be the same next time.
    Fatal(String),
}

impl Failure {
    /// The same, with the name of the file in front.
    pub(crate) fn in_file(self, path: &str) -> Failure {
        match self {
            Failure::Retry(message) => Failure::Retry(format!("{path}: {message}")),
            Failure::Fatal(message) => Failure::Fatal(format!("{path}: {message}")),
        }
    }
}
