//! The settings as they are written: a tree in which every key and every value knows its location.
//!
//! The tree is read key by key instead of being deserialized in one step, so that all problems are found at once.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, shown};
use super::span::{Origin, Source, Span};

/// A value and its location.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) shape: Shape,
    pub(super) span: Span,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Text(String),
    /// `None` if it does not fit into 64 bits.
    Integer(Option<i64>),
    Float(f64),
    Boolean,
    Datetime,
    List(Vec<Value>),
    Table(Table),
}

impl Value {
    /// Describes the value, for "cannot be …".
    pub(super) fn describe(&self) -> String {
        match self.shape {
            Shape::List(_) => "a list".to_owned(),
            Shape::Table(_) => "a table".to_owned(),
            _ if self.span.text().is_empty() => "empty".to_owned(),
            _ => format!("`{}`", shown(self.span.text())),
        }
    }
}

/// Keys and their values, in the order of the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Value,
}

impl Table {
    /// The entry of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Sets the value at `path`, creating tables on the way. Returns `false` if something on the way is not a table.
    pub(super) fn set(&mut self, path: &[String], key_span: &Span, value: Value) -> bool {
        let Some((key, rest)) = path.split_first() else { return false };
        let index = self.entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
            let empty = Value { shape: Shape::Table(Self::default()), span: value.span.clone() };
            self.entries.push(Entry { key: key.clone(), key_span: key_span.clone(), value: empty });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        if rest.is_empty() {
            (entry.key_span, entry.value) = (key_span.clone(), value);
            return true;
        }
        match &mut entry.value.shape {
            Shape::Table(table) => table.set(rest, key_span, value),
            _ => false,
        }
    }
}

/// Parses the text of a file.
///
/// # Errors
/// When it is not TOML: every syntax error that the parser finds.
pub(super) fn parse(source: &Arc<Source>) -> Result<Table, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(source.text.inner());
    if errors.is_empty() {
        return Ok(table(document.get_ref(), source));
    }
    Err(errors.iter().map(|error| syntax_problem(error, source)).collect())
}

fn syntax_problem(error: &toml::de::Error, source: &Arc<Source>) -> Problem {
    let end = source.text.inner().len();
    let span = Span::new(source, error.span().unwrap_or(end..end));
    match error.message() {
        "duplicate key" => {
            Problem::new(format!("duplicate key `{}`", shown(span.text()))).at(&span, "defined again here")
        }
        "string values must be quoted, expected literal string" if span.text().is_empty() => {
            Problem::new("this is not TOML").at(&span, "expected a value")
        }
        message => Problem::new("this is not TOML").at(&span, message),
    }
}

fn table(written: &DeTable<'_>, source: &Arc<Source>) -> Table {
    let mut entries: Vec<Entry> = written
        .iter()
        .map(|(key, inner)| Entry {
            key: key.get_ref().to_string(),
            key_span: Span::new(source, key.span()),
            value: value(inner, source),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.range.start);
    Table { entries }
}

/// A value of a parsed text. The parser limits the nesting, so this recursion is limited too.
fn value(written: &Spanned<DeValue<'_>>, source: &Arc<Source>) -> Value {
    let shape = match written.get_ref() {
        DeValue::String(text) => Shape::Text(text.to_string()),
        DeValue::Integer(number) => Shape::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Shape::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(_) => Shape::Boolean,
        DeValue::Datetime(_) => Shape::Datetime,
        DeValue::Array(items) => Shape::List(items.iter().map(|item| value(item, source)).collect()),
        DeValue::Table(inner) => Shape::Table(table(inner, source)),
    };
    Value { shape, span: Span::new(source, written.span()) }
}

/// The name and the value of `NAME=value`, a variable.
///
/// A text that is a single TOML value, such as `8` or `["a", "b"]`, is that value; any other text is a string without quotes.
pub(super) fn from_variable(name: &str, text: &str) -> (Span, Value) {
    let source = Source::new(Origin::Variable, "environment", format!("{name}={text}"));
    let name_span = Span::new(&source, 0..name.len());
    let written = DeTable::parse(source.text.inner()).ok().map(|document| table(document.get_ref(), &source));
    if let Some([Entry { key, value, .. }]) = written.as_ref().map(|table| &table.entries[..])
        && key == name
        && value.span.text() == text.trim()
    {
        return (name_span, value.clone());
    }
    let span = Span::new(&source, name.len() + 1..name.len() + 1 + text.len());
    (name_span, Value { shape: Shape::Text(text.to_owned()), span })
}
