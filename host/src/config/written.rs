//! The settings file, read again so that a problem found later can be shown where its setting is written.

use super::problem::Problem;
use super::settings::Settings;
use super::span::{Origin, Source, Span};
use super::tree::{self, Table};

/// What is written in the settings file. Empty if there is no file, or if it has become invalid since.
#[derive(Debug, Default)]
pub struct Written {
    root: Table,
}

impl Written {
    /// Reads the file of `settings`.
    pub fn of(settings: &Settings) -> Self {
        let Some(path) = &settings.file else { return Self::default() };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        let source = Source::new(Origin::File, &path.display().to_string(), text);
        Self { root: tree::parse(&source).unwrap_or_default() }
    }

    /// A problem with the setting at `path`, shown at the last key of the path that is written.
    pub fn problem(&self, path: &[&str], message: impl Into<String>, label: &str, help: &str) -> Problem {
        let problem = Problem::new(message).with_help(help);
        match self.nearest(path) {
            Some(span) => problem.at(span, label),
            None => problem,
        }
    }

    /// A note about the setting at `path`, with file and line if it is written.
    pub fn note(&self, path: &[&str], note: &str) -> String {
        match self.nearest(path) {
            Some(span) => format!("{}:{}: {note}", span.source.text.name(), span.line_and_column().0),
            None => note.to_owned(),
        }
    }

    fn nearest(&self, path: &[&str]) -> Option<&Span> {
        let mut table = Some(&self.root);
        let mut nearest = None;
        for key in path {
            let Some(entry) = table.and_then(|table| table.get(key)) else { break };
            nearest = Some(&entry.key_span);
            table = match &entry.value.shape {
                tree::Shape::Table(inner) => Some(inner),
                _ => None,
            };
        }
        // Another type's `[jobs.OTHER]` is the wrong location for a type that is not written.
        nearest.filter(|_| path.len() < 2 || path[0] != "jobs" || self.names(path[1]))
    }

    fn names(&self, job_type: &str) -> bool {
        let jobs = self.root.get("jobs").map(|entry| &entry.value.shape);
        matches!(jobs, Some(tree::Shape::Table(jobs)) if jobs.get(job_type).is_some())
    }
}
