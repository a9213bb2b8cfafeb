//! A value that is written under a key: access to it, and the problems it can have.

use super::problem::Problem;
use super::span::Origin;
use super::tree::{Shape, Table, Value};

/// A value that is written under a key.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    /// The key with its section, such as `worker.lease`.
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> Setting<'a> {
    /// A problem with a value of the right type: "`worker.lease` {what}".
    pub(super) fn problem(&self, what: &str, expected: impl Into<String>) -> Problem {
        Problem::new(format!("`{}` {what}", self.path)).at(&self.value.span, expected)
    }

    /// The problem that the value has the wrong type.
    pub(super) fn mismatch(&self, expected: &str) -> Problem {
        self.problem(&format!("cannot be {}", self.value.describe()), format!("expected {expected}"))
    }

    fn is_variable(&self) -> bool {
        self.value.span.origin() == Origin::Variable
    }

    /// A string. A variable always is one, even if its text looks like a number.
    ///
    /// # Errors
    /// When the file has anything but a string there.
    pub(super) fn text(&self, expected: &str) -> Result<&'a str, Problem> {
        match &self.value.shape {
            Shape::Text(text) => Ok(text),
            _ if self.is_variable() => Ok(self.value.span.text()),
            _ => Err(self.mismatch(expected)),
        }
    }

    /// Whether the value is exactly this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.value.shape, Shape::Text(text) if text == word)
    }

    /// The items of a list. In a variable, a list may also be words separated by commas.
    ///
    /// # Errors
    /// When the value is not a list.
    pub(super) fn list(&self, expected: &str) -> Result<Vec<Value>, Problem> {
        match &self.value.shape {
            Shape::List(items) => Ok(items.clone()),
            Shape::Text(text) if self.is_variable() && self.value.span.text() == text => Ok(self.split_at_commas(text)),
            _ => Err(self.mismatch(expected)),
        }
    }

    fn split_at_commas(&self, text: &str) -> Vec<Value> {
        let mut start = 0;
        let mut items = Vec::new();
        for item in text.split(',') {
            let word = item.trim();
            let word_start = start + (item.len() - item.trim_start().len());
            let span = self.value.span.part(word_start..word_start + word.len());
            items.push(Value { shape: Shape::Text(word.to_owned()), span });
            start += item.len() + 1;
        }
        items
    }

    /// A table.
    ///
    /// # Errors
    /// When the value is not a table.
    pub(super) fn table(&self, expected: &str) -> Result<&'a Table, Problem> {
        match &self.value.shape {
            Shape::Table(table) => Ok(table),
            _ => Err(self.mismatch(expected)),
        }
    }
}
