//! Where a setting is written: a text with a name, and the part of it that holds the setting.

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

/// A text that holds settings.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) origin: Origin,
    pub(super) text: NamedSource<String>,
}

impl Source {
    /// A text, with the name that messages use for it.
    pub(super) fn new(origin: Origin, name: &str, text: String) -> Arc<Self> {
        Arc::new(Self { origin, text: NamedSource::new(name, text) })
    }
}

impl SourceCode for Source {
    /// Where miette asks for context, only the lines of `span` itself: the lines around it may be unrelated, or hold secrets.
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
pub(super) struct Span {
    pub(super) source: Arc<Source>,
    /// In bytes; always within the text and on character boundaries.
    pub(super) range: Range<usize>,
}

impl Span {
    /// The bytes `range` of `source`, clamped to the text and widened to character boundaries.
    pub(super) fn new(source: &Arc<Source>, range: Range<usize>) -> Self {
        let text = source.text.inner();
        let start = text.floor_char_boundary(range.start);
        let end = text.ceil_char_boundary(range.end).max(start);
        Self { source: Arc::clone(source), range: start..end }
    }

    /// The text of the span, as it is written.
    pub(super) fn text(&self) -> &str {
        &self.source.text.inner()[self.range.clone()]
    }

    /// The part `range` of [`text`](Self::text).
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self::new(&self.source, self.range.start + range.start..self.range.start + range.end)
    }

    /// The bytes to underline. An empty span at the end of a line cannot be underlined, so the last character before it is.
    pub(super) fn underlined(&self) -> Range<usize> {
        let text = self.source.text.inner();
        let Range { start, end } = self.range;
        if start < end || !(text[start..].is_empty() || text[start..].starts_with(['\n', '\r'])) {
            return start..end;
        }
        let before = text[..start].trim_end_matches(['\n', '\r']);
        before.char_indices().next_back().map_or(start..end, |(last, _)| last..before.len())
    }

    /// The kind of text that it is part of.
    pub(super) fn origin(&self) -> Origin {
        self.source.origin
    }

    /// Line and column, both from 1; the column counts characters.
    pub(super) fn line_and_column(&self) -> (usize, usize) {
        let before = &self.source.text.inner()[..self.range.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
