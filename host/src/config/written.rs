//! The settings file once more, so that what others find out about a setting can be shown where it is written.

use super::file::{self, Table};
use super::place::{Origin, Place, Source};
use super::problem::Problem;
use super::settings::Settings;

/// What is written in the settings file. Empty where there is none, or where it has changed so much that it cannot be read.
#[derive(Debug, Default)]
pub struct Written {
    root: Table,
}

impl Written {
    /// The file of `settings`.
    pub fn of(settings: &Settings) -> Self {
        let Some(path) = &settings.file else { return Self::default() };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        let source = Source::new(Origin::File, &path.display().to_string(), text);
        Self { root: file::parse(&source).unwrap_or_default() }
    }

    /// A problem with the setting that the keys of `path` lead to, drawn at the nearest of them that is written.
    pub fn problem(&self, path: &[&str], message: impl Into<String>, label: &str, cure: &str) -> Problem {
        let problem = Problem::new(message).cure(cure);
        match self.nearest(path) {
            Some(place) => problem.at(place, label),
            None => problem,
        }
    }

    /// A note about a setting, with its file and line where it is written.
    pub fn note(&self, path: &[&str], note: &str) -> String {
        match self.nearest(path) {
            Some(place) => format!("{}:{}: {note}", place.source.text.name(), place.line_and_column().0),
            None => note.to_owned(),
        }
    }

    fn nearest(&self, path: &[&str]) -> Option<&Place> {
        let mut table = Some(&self.root);
        let mut nearest = None;
        for key in path {
            let Some(entry) = table.and_then(|table| table.get(key)) else { break };
            nearest = Some(&entry.key_place);
            table = match &entry.value.shape {
                file::Shape::Table(inner) => Some(inner),
                _ => None,
            };
        }
        // `[jobs]` alone says nothing about a type that is not named there.
        nearest.filter(|_| path.len() < 2 || path[0] != "jobs" || self.names(path[1]))
    }

    fn names(&self, job_type: &str) -> bool {
        let jobs = self.root.get("jobs").map(|entry| &entry.value.shape);
        matches!(jobs, Some(file::Shape::Table(jobs)) if jobs.get(job_type).is_some())
    }
}
