//! Problems with the settings: each with its location and what to do about it.

use std::fmt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use thiserror::Error;

use super::span::Span;

/// One thing that is wrong.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct Problem {
    message: String,
    span: Option<Span>,
    label: Option<String>,
    help: Option<String>,
}

impl Problem {
    /// A problem that `message` describes.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: None, label: None, help: None }
    }

    /// Points at `span`; `label` says what would be right there.
    pub(super) fn at(self, span: &Span, label: impl Into<String>) -> Self {
        Self { span: Some(span.clone()), label: Some(label.into()), ..self }
    }

    /// Says what to do, unless the problem already does.
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help.get_or_insert_with(|| help.into());
        self
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What was expected at its location.
    pub fn expected(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The name of the text (the file, or `environment`), the line and the column, both from 1.
    pub fn location(&self) -> Option<(&str, usize, usize)> {
        let span = self.span.as_ref()?;
        let (line, column) = span.line_and_column();
        Some((span.source.text.name(), line, column))
    }
}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.as_ref().map(|span| &*span.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(self.label.clone(), span.underlined()))))
    }
}

/// The first 60 characters of a text, without control characters, to quote in a message.
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
    /// The problems, sorted by location: first the file, then the variables.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| {
            let span = problem.span.as_ref();
            span.map(|span| (span.origin() as u8, span.source.text.inner().clone(), span.range.start))
        });
        Self { problems }
    }

    /// Every problem; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Draws the problems, as [`render`] does.
    pub fn render(&self, look: Look) -> String {
        render(&self.problems, look)
    }
}

/// Draws each problem with its line, a caret and what would be right.
pub fn render(problems: &[Problem], look: Look) -> String {
    let theme = match look {
        Look::Plain => GraphicalTheme::none(),
        Look::Colour => GraphicalTheme::unicode(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .without_syntax_highlighting()
        .with_links(false)
        .with_wrap_lines(false);
    let draw = |problem: &Problem| {
        let mut text = String::new();
        match handler.render_report(&mut text, problem) {
            Ok(()) => text,
            Err(fmt::Error) => format!("{problem}\n"),
        }
    };
    problems.iter().map(draw).collect::<Vec<_>>().join("\n")
}

/// What a check has found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The settings are refused because of these.
    pub(super) problems: Vec<Problem>,
    /// Keys that resemble none of their table. They become problems once it is known which other table has the key.
    pub(super) unknown_keys: Vec<UnknownKey>,
    /// Worth saying, but no reason to refuse the settings.
    pub(super) notes: Vec<String>,
}

/// A key that its table does not have.
#[derive(Debug)]
pub(super) struct UnknownKey {
    pub(super) key: String,
    pub(super) problem: Problem,
    /// What to say if no other table has the key.
    pub(super) help: String,
}

impl Findings {
    /// Takes a value, or keeps the problem with it.
    pub(super) fn take<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Adds a note about what is written at `span`.
    pub(super) fn note(&mut self, span: &Span, note: impl fmt::Display) {
        let (line, _) = span.line_and_column();
        self.notes.push(format!("{}:{line}: {note}", span.source.text.name()));
    }
}
