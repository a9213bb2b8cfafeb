//! Reading one value: what it may be, and what to say when it is something else.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use super::file::{Shape, Table, Value};
use super::place::Origin;
use super::problem::{Problem, shown};
use super::suggest;

/// A value that is written under a key.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    /// The key with its section, such as `worker.lease`.
    pub(super) path: String,
    /// What stands there.
    pub(super) value: &'a Value,
}

impl<'a> Setting<'a> {
    /// A problem with a value of the right kind: "`worker.lease` {what}".
    pub(super) fn problem(&self, what: &str, expected: impl Into<String>) -> Problem {
        Problem::new(format!("`{}` {what}", self.path)).at(&self.value.place, expected)
    }

    /// The problem that the value is of the wrong kind.
    fn mismatch(&self, expected: &str) -> Problem {
        self.problem(&format!("cannot be {}", self.value.describe()), format!("expected {expected}"))
    }

    fn is_from_shell(&self) -> bool {
        self.value.place.origin() != Origin::File
    }

    /// A string. A variable is always one, whatever it looks like.
    pub(super) fn text(&self, expected: &str) -> Result<&'a str, Problem> {
        match &self.value.shape {
            Shape::Text(text) => Ok(text),
            _ if self.is_from_shell() => Ok(self.value.place.text()),
            _ => Err(self.mismatch(expected)),
        }
    }

    /// Whether the value is exactly this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.value.shape, Shape::Text(text) if text == word)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Problem> {
        let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let expected = quoted.join(" or ");
        let text = self.text(&expected)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*meaning);
        }
        let problem = self.problem(&format!("cannot be `{}`", shown(text)), format!("expected {expected}"));
        Err(match suggest::closest(text, words.iter().map(|(word, _)| *word)) {
            Some(near) => problem.cure(format!("did you mean \"{near}\"?")),
            None => problem,
        })
    }

    /// A duration within `range`, written with its unit.
    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Result<Duration, Problem> {
        let expected = "a duration such as \"30s\" or \"1h30m\"";
        let text = match &self.value.shape {
            Shape::Text(text) => text,
            Shape::Integer(Some(number @ 1..)) => {
                return Err(self.mismatch(expected).cure(format!("write the unit: \"{number}s\" is {number} seconds")));
            }
            _ => return Err(self.mismatch(expected)),
        };
        match humantime::parse_duration(text.trim()) {
            Ok(duration) => self.within(duration, &range, |bound| duration_text(*bound)),
            Err(_) => Err(self.problem("is not a duration", format!("expected {expected}"))),
        }
    }

    /// A number of bytes within `range`, with a unit or without.
    pub(super) fn size(&self, range: RangeInclusive<u64>) -> Result<usize, Problem> {
        let expected = "a size such as \"1MiB\", or a number of bytes";
        let bytes = match &self.value.shape {
            Shape::Text(text) => match text.trim().parse::<ByteSize>() {
                Ok(size) => size.as_u64(),
                Err(_) => return Err(self.problem("is not a size", format!("expected {expected}"))),
            },
            // Whatever is negative or too long for 64 bits lies outside of every range.
            Shape::Integer(number) => number.and_then(|number| u64::try_from(number).ok()).unwrap_or(u64::MAX),
            _ => return Err(self.mismatch(expected)),
        };
        let bytes = self.within(bytes, &range, |bound| size_text(*bound))?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// A whole number within `range`.
    pub(super) fn integer(&self, range: RangeInclusive<i64>, expected: &str) -> Result<i64, Problem> {
        match &self.value.shape {
            Shape::Integer(Some(number)) => self.within(*number, &range, i64::to_string),
            Shape::Integer(None) => Err(self.out_of_range(&range, i64::to_string)),
            Shape::Text(text) if text.trim().parse::<i64>().is_ok() => {
                Err(self.mismatch(expected).cure(format!("write {} without the quotes", text.trim())))
            }
            _ => Err(self.mismatch(expected)),
        }
    }

    /// A number from 0 to 1.
    pub(super) fn share(&self) -> Result<f64, Problem> {
        let number = match &self.value.shape {
            Shape::Float(number) => *number,
            Shape::Integer(Some(0)) => 0.0,
            Shape::Integer(Some(1)) => 1.0,
            Shape::Integer(_) => f64::INFINITY,
            _ => return Err(self.mismatch("a number from 0 to 1")),
        };
        self.within(number, &(0.0..=1.0), f64::to_string)
    }

    /// Yes or no.
    pub(super) fn boolean(&self) -> Result<bool, Problem> {
        match &self.value.shape {
            Shape::Boolean => Ok(self.value.place.text() == "true"),
            _ => Err(self.mismatch("true or false")),
        }
    }

    /// The items of a list. In a variable a list may also be words with commas between them.
    pub(super) fn list(&self, expected: &str) -> Result<Vec<Value>, Problem> {
        match &self.value.shape {
            Shape::List(items) => Ok(items.clone()),
            Shape::Text(text) if self.is_from_shell() && self.value.place.text() == text => {
                Ok(self.split_at_commas(text))
            }
            _ => Err(self.mismatch(expected)),
        }
    }

    fn split_at_commas(&self, text: &str) -> Vec<Value> {
        let mut start = 0;
        let mut items = Vec::new();
        for item in text.split(',') {
            let word = item.trim();
            let word_start = start + (item.len() - item.trim_start().len());
            let place = self.value.place.part(word_start..word_start + word.len());
            items.push(Value { shape: Shape::Text(word.to_owned()), place });
            start += item.len() + 1;
        }
        items
    }

    /// A table.
    pub(super) fn table(&self, expected: &str) -> Result<&'a Table, Problem> {
        match &self.value.shape {
            Shape::Table(table) => Ok(table),
            _ => Err(self.mismatch(expected)),
        }
    }

    fn within<T: PartialOrd>(&self, value: T, range: &RangeInclusive<T>, show: fn(&T) -> String) -> Result<T, Problem> {
        if range.contains(&value) { Ok(value) } else { Err(self.out_of_range(range, show)) }
    }

    fn out_of_range<T>(&self, range: &RangeInclusive<T>, show: fn(&T) -> String) -> Problem {
        self.problem("is out of range", format!("expected {} to {}", show(range.start()), show(range.end())))
    }
}

/// A duration in the largest unit that shows all of it, such as `90m`.
pub(super) fn duration_text(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if millis.is_multiple_of(unit) && (millis > 0 || name == "s") {
            return format!("{}{name}", millis / unit);
        }
    }
    format!("{millis}ms")
}

fn size_text(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes > 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    format!("{bytes}B")
}
