//! Reading a table: a section declares its keys and reads them in one step, so that what is read is what is known.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::kind::{Kind, duration_text};
use super::problem::{Findings, Problem, UnknownKey, shown};
use super::secrets;
use super::setting::Setting;
use super::span::Origin;
use super::suggest;
use super::tree::{Entry, Shape, Table, Value};

/// A table that is being read. A value that is wrong becomes a problem, and reading goes on.
#[derive(Debug)]
pub(super) struct Section<'a, 'f> {
    path: String,
    table: Option<&'a Table>,
    declared: Vec<DeclaredKey>,
    findings: &'f mut Findings,
}

/// A key that a table may have.
#[derive(Clone, Debug)]
pub(super) struct DeclaredKey {
    pub(super) name: &'static str,
    /// What its value may be, as JSON Schema.
    pub(super) schema: Json,
}

impl<'a, 'f> Section<'a, 'f> {
    /// The table `value`, or an empty one.
    pub(super) fn open(path: String, value: Option<&'a Value>, findings: &'f mut Findings) -> Self {
        let table = value.and_then(|value| {
            let expected = format!("a table: [{path}], and its keys below");
            findings.take(Setting { path: path.clone(), value }.table(&expected))
        });
        Self { path, table, declared: Vec::new(), findings }
    }

    /// Declares a key and reads it into `slot`, which keeps its value if the key is absent or wrong.
    pub(super) fn key<T>(&mut self, name: &'static str, kind: Kind<'_, T>, slot: &mut T) {
        if let Some(value) = self.optional(name, kind) {
            *slot = value;
        }
    }

    /// Declares a key and reads it; `None` if it is absent or wrong.
    pub(super) fn optional<T>(&mut self, name: &'static str, kind: Kind<'_, T>) -> Option<T> {
        self.declared.push(DeclaredKey { name, schema: kind.schema().clone() });
        let setting = self.setting(name)?;
        kind.read(&setting, self.findings)
    }

    /// Refuses two durations of which the first is longer than the second.
    pub(super) fn in_order(&mut self, (low, low_value): (&str, Duration), (high, high_value): (&str, Duration)) {
        let written: Vec<_> = [low, high].iter().filter_map(|name| self.setting(name)).collect();
        let Some(setting) = written.first().filter(|_| low_value > high_value) else { return };
        let set_both = if written.len() < 2 { ": set both" } else { "" };
        let (low_value, high_value) = (duration_text(low_value), duration_text(high_value));
        let problem = setting
            .problem("does not fit", format!("expected {low} <= {high}"))
            .with_help(format!("{low} is {low_value} and {high} is {high_value}{set_both}"));
        self.findings.problems.push(problem);
    }

    fn setting(&self, name: &str) -> Option<Setting<'a>> {
        let entry = self.table?.get(name)?;
        Some(Setting { path: format!("{}.{name}", self.path), value: &entry.value })
    }

    /// Reports the keys that were not declared, and returns those that were.
    pub(super) fn close(self) -> Vec<DeclaredKey> {
        for entry in self.table.into_iter().flat_map(|table| &table.entries) {
            if !self.declared.iter().any(|key| key.name == entry.key) {
                self.unknown(entry).report(self.findings);
            }
        }
        self.declared
    }

    fn unknown(&self, entry: &Entry) -> Unknown {
        let what = format!("unknown key `{}` in [{}]", shown(&entry.key), self.path);
        if suggest::closest(&entry.key, ["secrets"]).is_some() && secrets::holds_a_value(&entry.value) {
            // The line may show a secret, so it is not drawn.
            let (line, _) = entry.key_span.line_and_column();
            let what = format!("{}:{line}: {what}", entry.key_span.source.text.name());
            let help = "`secrets` belongs under [jobs.NAME], and says where to find each secret";
            return Unknown::Explained(Problem::new(what).with_help(help));
        }
        let problem = Problem::new(what);
        let names = || self.declared.iter().map(|key| key.name);
        let Some(near) = suggest::closest(&entry.key, names()) else {
            let problem = problem.at(&entry.key_span, "no such setting");
            if let (Some(name), Shape::Table(_)) = (self.path.strip_prefix("jobs."), &entry.value.shape) {
                let quoted = format!("[jobs.\"{name}.{}\"]", shown(&entry.key));
                return Unknown::Explained(
                    problem.with_help(format!("a type with a dot in its name needs quotes: {quoted}")),
                );
            }
            let help = format!("keys of [{}]: {}", self.path, names().collect::<Vec<_>>().join(", "));
            return Unknown::Foreign(UnknownKey { key: entry.key.clone(), problem, help });
        };
        let label = if entry.key_span.origin() == Origin::Variable {
            let path = format!("{}.{near}", self.path).replace('.', "__");
            format!("did you mean `JOBQ_{}`?", path.to_uppercase())
        } else {
            format!("did you mean `{near}`?")
        };
        Unknown::Explained(problem.at(&entry.key_span, label))
    }
}

/// An unknown key: explained by this table, or perhaps a key of another one.
enum Unknown {
    Explained(Problem),
    Foreign(UnknownKey),
}

impl Unknown {
    fn report(self, findings: &mut Findings) {
        match self {
            Self::Explained(problem) => findings.problems.push(problem),
            Self::Foreign(key) => findings.unknown_keys.push(key),
        }
    }
}

/// A value that is a table with keys of its own: `declare` declares and reads them into a default value.
pub(super) fn table<'k, T: Default + 'k>(declare: impl Fn(&mut Section<'_, '_>, &mut T) + 'k) -> Kind<'k, T> {
    let read = move |path: String, value: Option<&Value>, findings: &mut Findings| {
        let mut read = T::default();
        let mut section = Section::open(path, value, findings);
        declare(&mut section, &mut read);
        (read, section.close())
    };
    let (_, keys) = read(String::new(), None, &mut Findings::default());
    Kind::with_findings(table_schema(&keys), move |setting, findings| {
        Some(read(setting.path.clone(), Some(setting.value), findings).0)
    })
}

/// A table with these keys, as JSON Schema.
pub(super) fn table_schema(keys: &[DeclaredKey]) -> Json {
    let properties: Map<String, Json> = keys.iter().map(|key| (key.name.to_owned(), key.schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
