//! `secrets`: variables of a handler whose values are elsewhere, in the environment of the daemon or in a file.
//!
//! The settings only say where each value is. Only commands that run guests read the values, so every other command works
//! without permission to. No message shows a value, or a line that may contain one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::kind::{self, Kind};
use super::problem::{Findings, Problem, shown};
use super::regular_file::read_regular_file;
use super::setting::Setting;
use super::span::Span;
use super::tree::{Entry, Shape, Table, Value};
use crate::queue::JobType;
use crate::sandbox::{LONGEST_SECRET, SHORTEST_SECRET};

/// Where to find the value of a secret.
#[derive(Clone)]
pub struct SecretSource {
    job_type: JobType,
    /// The variable that the guest sees.
    name: String,
    from: Store,
    span: Span,
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

/// Where to find the secrets of a type. A name in `env` already has a plain value, and cannot be a secret too.
pub(super) fn kind<'k>(
    job_type: &'k JobType,
    base: &'k Path,
    env: &'k BTreeMap<String, String>,
) -> Kind<'k, Vec<SecretSource>> {
    let schema = json!({
        "type": "object",
        "propertyNames": { "pattern": "^(?!JOBQ_)[A-Za-z_][A-Za-z0-9_]*$" },
        "additionalProperties": { "oneOf": [source_schema("env"), source_schema("file")] },
    });
    Kind::with_findings(schema, |setting, findings| Some(read(setting, job_type, base, env, findings)))
}

fn source_schema(key: &str) -> Json {
    json!({
        "type": "object",
        "properties": { key: { "type": "string", "minLength": 1 } },
        "required": [key],
        "additionalProperties": false,
    })
}

fn read(
    setting: &Setting<'_>,
    job_type: &JobType,
    base: &Path,
    env: &BTreeMap<String, String>,
    findings: &mut Findings,
) -> Vec<SecretSource> {
    let Shape::Table(table) = &setting.value.shape else {
        findings.problems.push(written_out(&setting.path, &setting.value.span));
        return Vec::new();
    };
    // A line with a value must not be drawn, so the other problems of this table are not reported.
    let written: Vec<_> = table.entries.iter().filter(|entry| !is_source(&entry.value)).collect();
    if !written.is_empty() {
        let problem = |entry: &&Entry| written_out(&format!("{}.{}", setting.path, shown(&entry.key)), &entry.key_span);
        findings.problems.extend(written.iter().map(problem));
        return Vec::new();
    }
    let mut sources = Vec::new();
    for entry in &table.entries {
        let path = format!("{}.{}", setting.path, shown(&entry.key));
        match source(&Setting { path, value: &entry.value }, entry, job_type, base) {
            Ok(source) if env.contains_key(&source.name) => {
                let problem = Problem::new(format!("`{}` is both in `env` and in `secrets`", source.name));
                findings.problems.push(problem.at(&entry.key_span, "the guest can see only one of them"));
            }
            Ok(source) => sources.push(source),
            Err(problem) => findings.problems.push(problem),
        }
    }
    sources
}

/// Whether the value of `secrets`, or of a misspelt `secrets`, may contain a secret instead of where to find it.
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

/// A secret that is written out in the settings. The message names the line but does not show it.
fn written_out(path: &str, span: &Span) -> Problem {
    let (line, _) = span.line_and_column();
    Problem::new(format!("{}:{line}: `{path}` does not say where to find the secret", span.source.text.name()))
        .with_help("write { env = \"NAME\" } for a variable of the daemon or { file = \"path\" }; the settings never contain the value itself")
}

fn source(setting: &Setting<'_>, entry: &Entry, job_type: &JobType, base: &Path) -> Result<SecretSource, Problem> {
    let name = entry.key.clone();
    let wrong = |what: &str, expected: &str| {
        Err(Problem::new(format!("`{}` {what}", setting.path)).at(&entry.key_span, expected))
    };
    if !is_variable(&name) {
        return wrong("is not a variable name", "expected letters, digits and _ such as API_KEY");
    }
    if name.starts_with("JOBQ_") {
        return wrong("is reserved: jobq sets JOBQ_ variables itself", "expected a name such as API_KEY");
    }
    let from = store(setting, setting.table("{ env = \"NAME\" } or { file = \"path\" }")?, base)?;
    Ok(SecretSource { job_type: job_type.clone(), name, from, span: setting.value.span.clone() })
}

fn store(setting: &Setting<'_>, table: &Table, base: &Path) -> Result<Store, Problem> {
    let [entry] = &table.entries[..] else {
        return Err(
            setting.problem("does not say where the secret is", "expected { env = \"NAME\" } or { file = \"path\" }")
        );
    };
    let inner = Setting { path: format!("{}.{}", setting.path, entry.key), value: &entry.value };
    if entry.key == "file" {
        return kind::read_path(&inner, "the path of a file, such as \"api_key.txt\"", base).map(Store::File);
    }
    match inner.text("the name of a variable of the daemon")? {
        name if name.is_empty() || name.contains(['=', '\0']) => {
            Err(inner.problem("is not a variable name", "expected a name such as \"API_KEY\""))
        }
        name => Ok(Store::Env(name.to_owned())),
    }
}

/// The name replaces the value in results, also inside JSON strings, so it contains nothing that JSON escapes.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl SecretSource {
    /// Reads the value. `variable` looks up a variable of the daemon.
    ///
    /// # Errors
    /// When it is missing, or cannot be kept secret.
    pub(super) fn value(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<String, Problem> {
        let bytes = match &self.from {
            Store::Env(name) => variable(name).map(|value| value.into_encoded_bytes()).ok_or_else(|| {
                let cure = format!(
                    "start jobq with {name} in its environment; a reload does not change the environment of a running daemon"
                );
                self.problem("is not set", "no such variable in the environment").with_help(cure)
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
            return Err(self.problem("contains a NUL", "expected text without NUL"));
        }
        if value.len() < SHORTEST_SECRET {
            let problem = self.problem("is too short", format!("expected at least {SHORTEST_SECRET} bytes"));
            return Err(
                problem.with_help("a value this short also occurs in ordinary text, so logs cannot be cleaned of it; `env` takes any value")
            );
        }
        if value.len() > LONGEST_SECRET {
            return Err(self.problem("is too long", format!("expected at most {LONGEST_SECRET} bytes")));
        }
        Ok(value)
    }

    fn problem(&self, what: &str, expected: impl Into<String>) -> Problem {
        Problem::new(format!("the secret `{}` of `{}` {what}", self.name, self.job_type)).at(&self.span, expected)
    }

    /// Adds a note if every user of this machine can read the file.
    pub(super) fn note_if_open(&self, findings: &mut Findings) {
        let Store::File(file) = &self.from else { return };
        let mode = std::fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o004 != 0 {
            let file = file.display();
            findings.note(&self.span, format!("every user of this machine can read the secret in `{file}`: chmod o-r"));
        }
    }
}

/// Reads a little more than a secret may have, to detect a file that is too long.
fn read_file(file: &Path) -> io::Result<Vec<u8>> {
    read_regular_file(file, LONGEST_SECRET as u64 + 3)
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
