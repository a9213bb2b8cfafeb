//! Reading one table: which keys it may have, and what to say about the others.

use super::check::sections_with;
use super::file::{Entry, Shape, Table, Value};
use super::place::Origin;
use super::problem::{Findings, Problem, shown};
use super::secrets;
use super::setting::Setting;
use super::suggest;

/// A table that is being read. A value that is wrong becomes a problem, and reading goes on.
#[derive(Debug)]
pub(super) struct Section<'a, 'f> {
    path: String,
    table: Option<&'a Table>,
    keys: Vec<&'static str>,
    pub(super) findings: &'f mut Findings,
}

impl<'a, 'f> Section<'a, 'f> {
    /// The table `value`, where there is one; keys that are not among `keys` are problems.
    pub(super) fn open(
        path: String,
        value: Option<&'a Value>,
        keys: Vec<&'static str>,
        findings: &'f mut Findings,
    ) -> Self {
        let table = value.and_then(|value| {
            let expected = format!("a table: [{path}], and its keys below");
            let table = Setting { path: path.clone(), value }.table(&expected);
            table.map_err(|problem| findings.problems.push(problem)).ok()
        });
        let section = Self { path, table, keys, findings };
        for entry in table.into_iter().flat_map(|table| &table.entries) {
            if !section.keys.contains(&entry.key.as_str()) {
                let problem = section.unknown(entry);
                section.findings.problems.push(problem);
            }
        }
        section
    }

    /// What is written under `key`.
    pub(super) fn setting(&self, key: &'static str) -> Option<Setting<'a>> {
        debug_assert!(self.keys.contains(&key), "{key} is not a key of {}", self.path);
        let entry = self.table?.get(key)?;
        Some(Setting { path: format!("{}.{key}", self.path), value: &entry.value })
    }

    /// Reads `key`; `None` where it is absent or wrong.
    pub(super) fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Setting<'a>) -> Result<T, Problem>,
    ) -> Option<T> {
        let setting = self.setting(key)?;
        read(&setting).map_err(|problem| self.findings.problems.push(problem)).ok()
    }

    /// Reads `key` into `slot`, which keeps its value where the key is absent or wrong.
    pub(super) fn fill<T>(
        &mut self,
        key: &'static str,
        slot: &mut T,
        read: impl FnOnce(&Setting<'a>) -> Result<T, Problem>,
    ) {
        if let Some(value) = self.get(key, read) {
            *slot = value;
        }
    }

    fn unknown(&self, entry: &Entry) -> Problem {
        let what = format!("unknown key `{}` in [{}]", shown(&entry.key), self.path);
        if suggest::closest(&entry.key, ["secrets"]).is_some() && secrets::holds_a_value(&entry.value) {
            // Not with its line.
            let (line, _) = entry.key_place.line_and_column();
            let what = format!("{}:{line}: {what}", entry.key_place.source.text.name());
            return Problem::new(what).cure("`secrets` stands under [jobs.NAME], and says where each is to be found");
        }
        let problem = Problem::new(what);
        match suggest::closest(&entry.key, self.keys.iter().copied()) {
            Some(near) if entry.key_place.origin() == Origin::Variable => {
                let path = format!("{}.{near}", self.path).replace('.', "__");
                problem.at(&entry.key_place, format!("did you mean `JOBQ_{}`?", path.to_uppercase()))
            }
            Some(near) => problem.at(&entry.key_place, format!("did you mean `{near}`?")),
            None => problem.at(&entry.key_place, "no such setting").cure(self.cure(entry)),
        }
    }

    /// What to do about a key that resembles none of this table.
    fn cure(&self, entry: &Entry) -> String {
        if let (Some(name), Shape::Table(_)) = (self.path.strip_prefix("jobs."), &entry.value.shape) {
            return format!("a type with a dot in its name needs quotes: [jobs.\"{name}.{}\"]", shown(&entry.key));
        }
        let elsewhere = sections_with(&entry.key);
        if elsewhere.is_empty() {
            format!("[{}] knows {}", self.path, self.keys.join(", "))
        } else {
            format!("`{}` stands under {}", entry.key, elsewhere.join(" and "))
        }
    }
}
