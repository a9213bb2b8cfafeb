//! Where a setting was written: a text with a name, and the part of it that says so.

use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, NamedSource, SourceCode, SourceSpan, SpanContents};

/// What kind of text a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `jobq.toml`.
    File,
    /// A `JOBQ_SECTION__KEY` variable; its text is `NAME=value`.
    Variable,
}

/// A text that settings are written in.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) origin: Origin,
    pub(super) text: NamedSource<String>,
}

impl Source {
    /// A text under the name that messages call it by.
    pub(super) fn new(origin: Origin, name: &str, text: String) -> Arc<Self> {
        Arc::new(Self { origin, text: NamedSource::new(name, text) })
    }
}

impl SourceCode for Source {
    /// Where miette asks for context, the whole lines that hold `span` and no others: neighbours may be about something else, or secret.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        if (lines_before, lines_after) == (0, 0) {
            return self.text.read_span(span, 0, 0);
        }
        let text = self.text.inner();
        let (start, end) = (span.offset(), span.offset() + span.len());
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
        self.text.read_span(&(line_start..line_end).into(), 0, 0)
    }
}

/// A part of a [`Source`].
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) source: Arc<Source>,
    /// In bytes; always within the text and on character boundaries.
    pub(super) span: Range<usize>,
}

impl Place {
    /// The bytes `span` of `source`, pulled into the text where they reach out of it.
    pub(super) fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        let text = source.text.inner();
        let start = text.floor_char_boundary(span.start);
        let end = text.ceil_char_boundary(span.end).max(start);
        Self { source: Arc::clone(source), span: start..end }
    }

    /// The text at this place, as it is written.
    pub(super) fn text(&self) -> &str {
        &self.source.text.inner()[self.span.clone()]
    }

    /// The part `span` of [`text`](Self::text).
    pub(super) fn part(&self, span: Range<usize>) -> Self {
        Self::new(&self.source, self.span.start + span.start..self.span.start + span.end)
    }

    /// The part of the text to point at. Nothing can be drawn behind the end of a line, so there it is the last character before.
    pub(super) fn drawn(&self) -> Range<usize> {
        let text = self.source.text.inner();
        let Range { start, end } = self.span;
        if start < end || !(text[start..].is_empty() || text[start..].starts_with(['\n', '\r'])) {
            return start..end;
        }
        let before = text[..start].trim_end_matches(['\n', '\r']);
        before.char_indices().next_back().map_or(start..end, |(last, _)| last..before.len())
    }

    /// What kind of text it is in.
    pub(super) fn origin(&self) -> Origin {
        self.source.origin
    }

    /// Line and column, both counted from 1, the column in characters.
    pub(super) fn line_and_column(&self) -> (usize, usize) {
        let before = &self.source.text.inner()[..self.span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
