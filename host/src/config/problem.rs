//! What is wrong with the settings: every problem with its place and its cure, rendered for people.

use std::fmt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use thiserror::Error;

use super::place::Place;

/// One thing that is wrong.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct Problem {
    message: String,
    place: Option<Place>,
    label: Option<String>,
    cure: Option<String>,
}

impl Problem {
    /// A problem that `message` names.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, label: None, cure: None }
    }

    /// Points at `place`; `label` says there what would be right.
    pub(super) fn at(self, place: &Place, label: impl Into<String>) -> Self {
        Self { place: Some(place.clone()), label: Some(label.into()), ..self }
    }

    /// Says what to do, unless that has been said.
    pub(super) fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(self.cure.unwrap_or_else(|| cure.into())), ..self }
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What was expected at the place.
    pub fn expected(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&str> {
        self.cure.as_deref()
    }

    /// The text that holds it (the file as it was named, `environment` or `command line`), the line and the column, both from 1.
    pub fn location(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let (line, column) = place.line_and_column();
        Some((place.source.text.name(), line, column))
    }
}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.cure.as_ref().map(|cure| Box::new(cure) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|place| &*place.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(self.label.clone(), place.drawn()))))
    }
}

/// As much of a text as a message can bear, without control characters.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// How problems are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// ASCII without colour: for files, pipes and `NO_COLOR`.
    Plain,
    /// For a terminal.
    Colour,
}

/// The settings cannot be used. Holds every problem, in the order of the text; displays as [`Look::Plain`].
#[derive(Debug, Error)]
#[error("{}", self.render(Look::Plain).trim_end())]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// The problems, sorted by place: file, variables.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| {
            problem
                .place
                .as_ref()
                .map(|place| (place.origin() as u8, place.source.text.inner().clone(), place.span.start))
        });
        Self { problems }
    }

    /// Each problem; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// As [`render`] draws them.
    pub fn render(&self, look: Look) -> String {
        render(&self.problems, look)
    }
}

/// Every problem with its line, a caret and what would be right, one after the other.
pub fn render(problems: &[Problem], look: Look) -> String {
    let theme = match look {
        Look::Plain => GraphicalTheme::none(),
        Look::Colour => GraphicalTheme::unicode(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .without_syntax_highlighting()
        .with_links(false)
        .with_wrap_lines(false);
    let mut drawn = Vec::new();
    for problem in problems {
        let mut text = String::new();
        match handler.render_report(&mut text, problem) {
            Ok(()) => drawn.push(text),
            Err(fmt::Error) => drawn.push(format!("{problem}\n")),
        }
    }
    drawn.join("\n")
}

/// What a check has found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// These refuse the settings.
    pub(super) problems: Vec<Problem>,
    /// These are only said.
    pub(super) notes: Vec<String>,
}

impl Findings {
    /// Adds a note about what is written at `place`.
    pub(super) fn note(&mut self, place: &Place, note: impl fmt::Display) {
        let (line, _) = place.line_and_column();
        self.notes.push(format!("{}:{line}: {note}", place.source.text.name()));
    }
}
