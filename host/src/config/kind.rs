//! The kinds of values. A kind reads a value and describes it as JSON Schema, so that a key is declared in one place.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde_json::{Value as Json, json};

use super::problem::{Findings, Problem, shown};
use super::setting::Setting;
use super::suggest;
use super::tree::Shape;
use crate::queue::JobType;

/// What a value may be.
pub(super) struct Kind<'k, T> {
    schema: Json,
    read: Reader<'k, T>,
}

/// Reads a value; `None` if nothing of it can be used.
type Reader<'k, T> = Box<dyn Fn(&Setting<'_>, &mut Findings) -> Option<T> + 'k>;

impl<'k, T: 'k> Kind<'k, T> {
    /// A kind whose values have at most one problem.
    pub(super) fn new(schema: Json, read: impl Fn(&Setting<'_>) -> Result<T, Problem> + 'k) -> Self {
        Self::with_findings(schema, move |setting, findings| findings.take(read(setting)))
    }

    /// A kind whose values can have several problems. `read` returns `None` if nothing of the value can be used.
    pub(super) fn with_findings(schema: Json, read: impl Fn(&Setting<'_>, &mut Findings) -> Option<T> + 'k) -> Self {
        Self { schema, read: Box::new(read) }
    }

    /// Reads a value; `None` if it is wrong.
    pub(super) fn read(&self, setting: &Setting<'_>, findings: &mut Findings) -> Option<T> {
        (self.read)(setting, findings)
    }

    /// The kind as JSON Schema.
    pub(super) fn schema(&self) -> &Json {
        &self.schema
    }

    /// The same values, converted.
    pub(super) fn map<U: 'k>(self, convert: impl Fn(T) -> U + 'k) -> Kind<'k, U> {
        let read = self.read;
        Kind::with_findings(self.schema, move |setting, findings| read(setting, findings).map(&convert))
    }

    /// Allows a word too, such as `"auto"`.
    pub(super) fn or_word(self, word: &'static str, meaning: T) -> Self
    where
        T: Clone,
    {
        let read = self.read;
        Self::with_findings(json!({ "oneOf": [{ "const": word }, self.schema] }), move |setting, findings| {
            if setting.is_word(word) { Some(meaning.clone()) } else { read(setting, findings) }
        })
    }

    /// What to do about a value that is wrong, where its problem does not say so already.
    pub(super) fn help(self, help: &'static str) -> Self {
        let read = self.read;
        Self::with_findings(self.schema, move |setting, findings| {
            let mut own = Findings::default();
            let value = read(setting, &mut own);
            findings.problems.extend(own.problems.into_iter().map(|problem| problem.with_help(help)));
            findings.unknown_keys.extend(own.unknown_keys);
            findings.notes.extend(own.notes);
            value
        })
    }

    /// Documents a key of an inline table, which has no comment of its own in jobq.toml.
    pub(super) fn doc(mut self, doc: &str) -> Self {
        self.schema["description"] = json!(doc);
        self
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(words: &'static [(&'static str, T)]) -> Kind<'static, T> {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Kind::new(json!({ "enum": names }), |setting| {
        let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let expected = quoted.join(" or ");
        let text = setting.text(&expected)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*meaning);
        }
        let problem = setting.problem(&format!("cannot be `{}`", shown(text)), format!("expected {expected}"));
        Err(match suggest::closest(text, words.iter().map(|(word, _)| *word)) {
            Some(near) => problem.with_help(format!("did you mean \"{near}\"?")),
            None => problem,
        })
    })
}

/// Durations as humantime reads them, such as `1h 30m`.
const DURATION: &str = r"^\s*(0|([0-9]+(\.[0-9]+)?\s*[A-Za-zµ]+\s*)+)\s*$";

/// A duration within `range`, with its unit. `default` shows which unit a number without one most likely means.
pub(super) fn duration<'k>(range: RangeInclusive<Duration>, default: Duration) -> Kind<'k, Duration> {
    Kind::new(json!({ "type": "string", "pattern": DURATION }), move |setting| {
        let expected = "a duration such as \"30s\" or \"1h30m\"";
        let text = match &setting.value.shape {
            Shape::Text(text) => text,
            Shape::Integer(Some(number @ 1..)) => {
                return Err(setting.mismatch(expected).with_help(with_unit(*number, default)));
            }
            _ => return Err(setting.mismatch(expected)),
        };
        match humantime::parse_duration(text.trim()) {
            Ok(duration) => within(setting, duration, &range, |bound| duration_text(*bound)),
            Err(_) => {
                let problem = setting.problem("is not a duration", format!("expected {expected}"));
                Err(match text.trim().parse() {
                    Ok(number @ 1..) => problem.with_help(with_unit(number, default)),
                    _ => problem,
                })
            }
        }
    })
}

fn with_unit(number: i64, default: Duration) -> String {
    let (unit, name) = match default {
        _ if default < Duration::from_secs(1) => ("ms", "millisecond"),
        _ if default < Duration::from_secs(86_400) => ("s", "second"),
        _ => ("d", "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("write the unit: \"{number}{unit}\" is {number} {name}{plural}")
}

/// Sizes as bytesize reads them, such as `1.5 MiB`.
const SIZE: &str = r"^\s*[0-9][0-9.]*\s*([KMGTPEkmgtpe][iI]?)?[bB]?\s*$";

/// A number of bytes within `range`, with a unit or without.
pub(super) fn size<'k>(range: RangeInclusive<u64>) -> Kind<'k, usize> {
    let schema = json!({ "oneOf": [
        { "type": "string", "pattern": SIZE },
        { "type": "integer", "minimum": range.start(), "maximum": range.end() },
    ] });
    Kind::new(schema, move |setting| {
        let expected = "a size such as \"1MiB\", or a number of bytes";
        let bytes = match &setting.value.shape {
            Shape::Text(text) => match text.trim().parse::<ByteSize>() {
                Ok(size) => size.as_u64(),
                Err(_) => return Err(setting.problem("is not a size", format!("expected {expected}"))),
            },
            // Numbers that are negative or too long for 64 bits are outside of every range.
            Shape::Integer(number) => number.and_then(|number| u64::try_from(number).ok()).unwrap_or(u64::MAX),
            _ => return Err(setting.mismatch(expected)),
        };
        let bytes = within(setting, bytes, &range, |bound| size_text(*bound))?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    })
}

/// A whole number within `range`.
pub(super) fn integer<'k>(range: RangeInclusive<i64>, expected: &'static str) -> Kind<'k, i64> {
    let mut schema = json!({ "type": "integer", "minimum": range.start() });
    if *range.end() < i64::MAX {
        schema["maximum"] = json!(range.end());
    }
    Kind::new(schema, move |setting| match &setting.value.shape {
        Shape::Integer(Some(number)) => within(setting, *number, &range, i64::to_string),
        Shape::Integer(None) => Err(out_of_range(setting, &range, i64::to_string)),
        Shape::Text(text) if text.trim().parse::<i64>().is_ok() => {
            Err(setting.mismatch(expected).with_help(format!("write {} without the quotes", text.trim())))
        }
        _ => Err(setting.mismatch(expected)),
    })
}

/// A number of attempts at once, at least one: with none, nothing would ever run.
pub(super) fn concurrency<'k>(expected: &'static str) -> Kind<'k, NonZeroU32> {
    /// For more slots the sandbox cannot reserve address space.
    const MAX: i64 = 10_000;
    let convert = |number| u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    integer(1..=MAX, expected).map(convert)
}

/// A number from 0 to 1.
pub(super) fn fraction<'k>() -> Kind<'k, f64> {
    Kind::new(json!({ "type": "number", "minimum": 0, "maximum": 1 }), |setting| {
        let number = match &setting.value.shape {
            Shape::Float(number) => *number,
            Shape::Integer(Some(0)) => 0.0,
            Shape::Integer(Some(1)) => 1.0,
            Shape::Integer(_) => f64::INFINITY,
            _ => return Err(setting.mismatch("a number from 0 to 1")),
        };
        within(setting, number, &(0.0..=1.0), f64::to_string)
    })
}

/// A switch that is off unless it is written.
pub(super) fn boolean<'k>() -> Kind<'k, bool> {
    Kind::new(json!({ "type": "boolean", "default": false }), |setting| match &setting.value.shape {
        Shape::Boolean => Ok(setting.value.span.text() == "true"),
        _ => Err(setting.mismatch("true or false")),
    })
}

/// A path; a relative one starts at `base`, the directory of the settings file.
pub(super) fn path<'k>(expected: &'static str, base: &'k Path) -> Kind<'k, PathBuf> {
    Kind::new(json!({ "type": "string", "minLength": 1 }), move |setting| read_path(setting, expected, base))
}

/// Reads a [`path`].
///
/// # Errors
/// When the value is not a path.
pub(super) fn read_path(setting: &Setting<'_>, expected: &str, base: &Path) -> Result<PathBuf, Problem> {
    let text = setting.text(expected)?;
    if text.is_empty() || text.contains('\0') {
        return Err(setting.problem("is not a path", format!("expected {expected}")));
    }
    if text == "~" || text.starts_with("~/") {
        let problem = setting.problem("begins with ~", format!("expected {expected}"));
        return Err(problem.with_help("only a shell expands ~: write the whole path"));
    }
    Ok(base.join(text))
}

/// The name of a job type.
pub(super) fn job_type<'k>() -> Kind<'k, JobType> {
    Kind::new(json!({ "type": "string", "pattern": JobType::PATTERN }), |setting| {
        let name = setting.text("the name of a job type")?;
        let problem =
            |_| setting.problem(&format!("names `{}`, which is not a job type", shown(name)), JobType::EXPECTED);
        JobType::parse(name).map_err(problem)
    })
}

/// A list of values of one kind. Items that are wrong are left out.
pub(super) fn list<'k, T: 'k>(expected: &'static str, item: Kind<'k, T>) -> Kind<'k, Vec<T>> {
    Kind::with_findings(json!({ "type": "array", "items": item.schema() }), move |setting, findings| {
        let items = findings.take(setting.list(expected))?;
        let settings = items.iter().map(|value| Setting { path: setting.path.clone(), value });
        Some(settings.filter_map(|setting| item.read(&setting, findings)).collect())
    })
}

fn within<T: PartialOrd>(
    setting: &Setting<'_>,
    value: T,
    range: &RangeInclusive<T>,
    show: fn(&T) -> String,
) -> Result<T, Problem> {
    if range.contains(&value) { Ok(value) } else { Err(out_of_range(setting, range, show)) }
}

fn out_of_range<T>(setting: &Setting<'_>, range: &RangeInclusive<T>, show: fn(&T) -> String) -> Problem {
    setting.problem("is out of range", format!("expected {} to {}", show(range.start()), show(range.end())))
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
