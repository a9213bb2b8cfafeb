//! The settings as they are written: a tree in which every key and every value knows its place.
//!
//! The tree is walked key by key instead of being deserialized at once, so that many mistakes are found in one go.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::place::{Origin, Place, Source};
use super::problem::{Problem, shown};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) shape: Shape,
    pub(super) place: Place,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Text(String),
    /// `None` does not fit into 64 bits.
    Integer(Option<i64>),
    Float(f64),
    Boolean,
    Datetime,
    List(Vec<Value>),
    Table(Table),
}

impl Value {
    /// What it is, for "cannot be …".
    pub(super) fn describe(&self) -> String {
        match self.shape {
            Shape::List(_) => "a list".to_owned(),
            Shape::Table(_) => "a table".to_owned(),
            _ if self.place.text().is_empty() => "empty".to_owned(),
            _ => format!("`{}`", shown(self.place.text())),
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
    pub(super) key_place: Place,
    pub(super) value: Value,
}

impl Table {
    /// The entry of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Sets the value that `path` leads to, over what is there; says `false` where the path runs into something that is no table.
    pub(super) fn set(&mut self, path: &[String], key_place: &Place, value: Value) -> bool {
        let Some((key, rest)) = path.split_first() else { return false };
        let index = self.entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
            let empty = Value { shape: Shape::Table(Self::default()), place: value.place.clone() };
            self.entries.push(Entry { key: key.clone(), key_place: key_place.clone(), value: empty });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        if rest.is_empty() {
            (entry.key_place, entry.value) = (key_place.clone(), value);
            return true;
        }
        match &mut entry.value.shape {
            Shape::Table(table) => table.set(rest, key_place, value),
            _ => false,
        }
    }
}

/// Reads the text of a file.
pub(super) fn parse(source: &Arc<Source>) -> Result<Table, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(source.text.inner());
    if errors.is_empty() {
        return Ok(table(document.get_ref(), source));
    }
    Err(errors.iter().map(|error| syntax_problem(error, source)).collect())
}

fn syntax_problem(error: &toml::de::Error, source: &Arc<Source>) -> Problem {
    let end = source.text.inner().len();
    let place = Place::new(source, error.span().unwrap_or(end..end));
    match error.message() {
        "duplicate key" => {
            Problem::new(format!("`{}` stands here twice", shown(place.text()))).at(&place, "the second one")
        }
        "string values must be quoted, expected literal string" if place.text().is_empty() => {
            Problem::new("this is not TOML").at(&place, "expected a value")
        }
        message => Problem::new("this is not TOML").at(&place, message),
    }
}

fn table(written: &DeTable<'_>, source: &Arc<Source>) -> Table {
    let mut entries: Vec<Entry> = written
        .iter()
        .map(|(key, inner)| Entry {
            key: key.get_ref().to_string(),
            key_place: Place::new(source, key.span()),
            value: value(inner, source),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_place.span.start);
    Table { entries }
}

/// A value of a parsed text. The parser bounds how deep values nest, so the recursion is bounded too.
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
    Value { shape, place: Place::new(source, written.span()) }
}

/// The place of the name and the value of `NAME=value`, a variable.
///
/// What reads as one value of TOML, such as `8` or `["a", "b"]`, is that; all else is a string without quotes.
pub(super) fn from_shell(name: &str, text: &str) -> (Place, Value) {
    let source = Source::new(Origin::Variable, "environment", format!("{name}={text}"));
    let name_place = Place::new(&source, 0..name.len());
    let written = DeTable::parse(source.text.inner()).ok().map(|document| table(document.get_ref(), &source));
    if let Some([Entry { key, value, .. }]) = written.as_ref().map(|table| &table.entries[..])
        && key == name
        && value.place.text() == text.trim()
    {
        return (name_place, value.clone());
    }
    let place = Place::new(&source, name.len() + 1..name.len() + 1 + text.len());
    (name_place, Value { shape: Shape::Text(text.to_owned()), place })
}
