//! `secrets`: variables whose values stand elsewhere, in the environment of the daemon or in a file.
//!
//! The settings hold where each is to be found. Only who runs guests reads them, by [`Settings::with_secrets`], so that
//! every other command works without the right to. No message shows a value, or a line that may hold one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{Entry, Shape, Table, Value};
use super::path::path;
use super::place::Place;
use super::problem::{ConfigError, Findings, Problem, shown};
use super::regular::read_regular;
use super::setting::Setting;
use super::settings::Settings;
use crate::queue::JobType;
use crate::sandbox::{LONGEST_SECRET, SHORTEST_SECRET, Secret};

/// Where the value of a secret is to be found.
#[derive(Clone)]
pub struct SecretSource {
    job_type: JobType,
    /// The variable that the guest sees.
    name: String,
    from: Store,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Store {
    /// A variable of the daemon.
    Env(String),
    File(PathBuf),
}

impl SecretSource {
    /// The type that is given it.
    pub fn job_type(&self) -> &JobType {
        &self.job_type
    }

    /// The variable that the guest sees.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.from {
            Store::Env(variable) => write!(f, "{} from the variable {variable}", self.name),
            Store::File(file) => write!(f, "{} from the file {}", self.name, file.display()),
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self, self.job_type)
    }
}

impl PartialEq for SecretSource {
    fn eq(&self, other: &Self) -> bool {
        (&self.job_type, &self.name, &self.from) == (&other.job_type, &other.name, &other.from)
    }
}

/// Reads where the secrets of a type are to be found; `taken` says whether a variable has a plain value already.
pub(super) fn read(
    setting: &Setting<'_>,
    job_type: &JobType,
    base: &Path,
    taken: impl Fn(&str) -> bool,
    findings: &mut Findings,
) -> Vec<SecretSource> {
    let Shape::Table(table) = &setting.value.shape else {
        findings.problems.push(written_out(&setting.path, &setting.value.place));
        return Vec::new();
    };
    // Nothing of a line that holds a value may be drawn, so nothing else is said of this table.
    let written: Vec<_> = table.entries.iter().filter(|entry| !is_source(&entry.value)).collect();
    if !written.is_empty() {
        let problem =
            |entry: &&Entry| written_out(&format!("{}.{}", setting.path, shown(&entry.key)), &entry.key_place);
        findings.problems.extend(written.iter().map(problem));
        return Vec::new();
    }
    let mut sources = Vec::new();
    for entry in &table.entries {
        let path = format!("{}.{}", setting.path, shown(&entry.key));
        match source(&Setting { path, value: &entry.value }, entry, job_type, base) {
            Ok(source) if taken(&source.name) => {
                let problem = Problem::new(format!("`{}` stands in `env` and in `secrets`", source.name));
                findings.problems.push(problem.at(&entry.key_place, "the guest can see only one of them"));
            }
            Ok(source) => sources.push(source),
            Err(problem) => findings.problems.push(problem),
        }
    }
    sources
}

/// Whether what stands under `secrets`, or under a key that was to be that, may be no description of where they are but the secrets.
pub(super) fn holds_a_value(value: &Value) -> bool {
    match &value.shape {
        Shape::Table(table) => table.entries.iter().any(|entry| !is_source(&entry.value)),
        _ => true,
    }
}

fn is_source(value: &Value) -> bool {
    let Shape::Table(table) = &value.shape else { return false };
    table.entries.iter().all(|entry| matches!(entry.key.as_str(), "env" | "file"))
}

/// Says where it is, and does not show it.
fn written_out(path: &str, place: &Place) -> Problem {
    let (line, _) = place.line_and_column();
    Problem::new(format!("{}:{line}: `{path}` does not say where the secret is to be found", place.source.text.name()))
        .cure("write { env = \"NAME\" } for a variable of the daemon or { file = \"path\" }; the value itself stands nowhere in the settings")
}

fn source(setting: &Setting<'_>, entry: &Entry, job_type: &JobType, base: &Path) -> Result<SecretSource, Problem> {
    let name = entry.key.clone();
    let wrong = |what: &str, expected: &str| {
        Err(Problem::new(format!("`{}` {what}", setting.path)).at(&entry.key_place, expected))
    };
    if !is_variable(&name) {
        return wrong("is not the name of a variable", "expected letters, digits and _ such as API_KEY");
    }
    if name.starts_with("JOBQ_") {
        return wrong("is reserved: jobq sets JOBQ_ variables itself", "expected a name such as API_KEY");
    }
    let from = store(setting, setting.table("{ env = \"NAME\" } or { file = \"path\" }")?, base)?;
    Ok(SecretSource { job_type: job_type.clone(), name, from, place: setting.value.place.clone() })
}

fn store(setting: &Setting<'_>, table: &Table, base: &Path) -> Result<Store, Problem> {
    let [entry] = &table.entries[..] else {
        return Err(
            setting.problem("does not say where the secret is", "expected { env = \"NAME\" } or { file = \"path\" }")
        );
    };
    let inner = Setting { path: format!("{}.{}", setting.path, entry.key), value: &entry.value };
    if entry.key == "file" {
        return path(&inner, "the path of a file, such as \"api_key.txt\"", base).map(Store::File);
    }
    match inner.text("the name of a variable of the daemon")? {
        name if name.is_empty() || name.contains(['=', '\0']) => {
            Err(inner.problem("is not the name of a variable", "expected a name such as \"API_KEY\""))
        }
        name => Ok(Store::Env(name.to_owned())),
    }
}

/// Its name is put into results in place of its value, within strings of JSON too.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Settings {
    /// Forgets the secrets of every other type, for who runs guests of this one only.
    #[must_use]
    pub fn with_secrets_of_none_but(mut self, job_type: &JobType) -> Self {
        self.secrets.retain(|source| source.job_type == *job_type);
        self
    }

    /// Reads the secrets of every type and puts them among its grants. `variable` looks into the environment of the daemon.
    ///
    /// # Errors
    /// When one is missing or cannot be kept secret: every such problem, each with its line.
    pub fn with_secrets(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let (mut found, mut findings) = (BTreeMap::<JobType, Vec<(String, Secret)>>::new(), Findings::default());
        for source in &self.secrets {
            match source.value(&variable) {
                Ok(value) => {
                    let secret = (source.name.clone(), Secret::new(&value));
                    found.entry(source.job_type.clone()).or_default().push(secret);
                    source.note_if_open(&mut findings);
                }
                Err(problem) => findings.problems.push(problem),
            }
        }
        if !findings.problems.is_empty() {
            return Err(ConfigError::new(findings.problems));
        }
        self.notes.extend(findings.notes);
        for (job_type, secrets) in found {
            if let Some(rule) = self.worker.job_types.by_type.get_mut(&job_type) {
                Arc::make_mut(rule).grants.secrets = secrets.into_iter().collect();
            }
        }
        Ok(self)
    }
}

impl SecretSource {
    fn value(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<String, Problem> {
        let bytes = match &self.from {
            Store::Env(name) => variable(name).map(|value| value.into_encoded_bytes()).ok_or_else(|| {
                let cure = format!(
                    "start jobq with {name} in its environment; a reload does not change that of a running daemon"
                );
                self.problem("is not set", "no such variable in the environment").cure(cure)
            })?,
            Store::File(file) => without_newline(read_file(file).map_err(|error| {
                self.problem(&format!("cannot be read: {error}"), format!("this is `{}`", file.display()))
            })?),
        };
        let value = String::from_utf8(bytes).map_err(|_| self.problem("is not UTF-8", "expected text"))?;
        if value.is_empty() {
            return Err(self.problem("is empty", "expected a value"));
        }
        if value.contains('\0') {
            return Err(self.problem("holds a NUL", "expected text without NUL"));
        }
        if value.len() < SHORTEST_SECRET {
            let problem = self.problem("is too short", format!("expected at least {SHORTEST_SECRET} bytes"));
            return Err(
                problem.cure("so short a value cannot be told from other text and kept out of logs; `env` takes any")
            );
        }
        if value.len() > LONGEST_SECRET {
            return Err(self.problem("is too long", format!("expected at most {LONGEST_SECRET} bytes")));
        }
        Ok(value)
    }

    fn problem(&self, what: &str, expected: impl Into<String>) -> Problem {
        Problem::new(format!("the secret `{}` of `{}` {what}", self.name, self.job_type)).at(&self.place, expected)
    }

    fn note_if_open(&self, findings: &mut Findings) {
        let Store::File(file) = &self.from else { return };
        let mode = std::fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o004 != 0 {
            let file = file.display();
            findings
                .note(&self.place, format!("every user of this machine can read the secret in `{file}`: chmod o-r"));
        }
    }
}

/// A little more than a secret may have, so that a file that is too long is seen to be.
fn read_file(file: &Path) -> io::Result<Vec<u8>> {
    read_regular(file, LONGEST_SECRET as u64 + 3)
}

fn without_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    bytes
}
