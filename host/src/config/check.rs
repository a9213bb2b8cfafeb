//! From text to [`Settings`]: reads every section, and collects every problem.

use std::path::Path;
use std::sync::Arc;

use super::defaults;
use super::environment::Environment;
use super::jobs;
use super::problem::{ConfigError, Findings, Problem, UnknownKey, shown};
use super::section::{DeclaredKey, Section};
use super::settings::Settings;
use super::span::{Origin, Source};
use super::suggest;
use super::tables;
use super::tree::{self, Entry, Shape, Table};
use crate::plugins::PluginOptions;
use crate::worker::{JobTypeOptions, JobTypes, WorkerOptions};

/// Checks the text of a settings file. Reads no file: `name` is how messages call the text, and relative paths start at `base`.
///
/// # Errors
/// When anything is wrong: every problem of the text and the variables at once. Syntax errors are reported alone.
pub fn check(text: &str, name: &str, base: &Path, environment: &Environment) -> Result<Settings, ConfigError> {
    let source = Source::new(Origin::File, name, text.strip_prefix('\u{feff}').unwrap_or(text).to_owned());
    let mut root = tree::parse(&source).map_err(ConfigError::new)?;
    let (declared, mut findings) = (declared(), Findings::default());
    environment.overlay(&mut root, &names(&declared), &mut findings);
    let mut settings = Reader { root: &root, findings: &mut findings, declared: &mut Vec::new() }.read(base);
    for entry in root.entries.iter().filter(|entry| !names(&declared).contains(&entry.key.as_str())) {
        findings.problems.push(unknown_section(entry, &declared));
    }
    for UnknownKey { key, problem, help } in std::mem::take(&mut findings.unknown_keys) {
        let help = match tables_with(&declared, &key)[..] {
            [] => help,
            ref others => format!("`{key}` belongs in {}", others.join(" or ")),
        };
        findings.problems.push(problem.with_help(help));
    }
    if findings.problems.is_empty() {
        settings.notes = findings.notes;
        Ok(settings)
    } else {
        Err(ConfigError::new(findings.problems))
    }
}

/// A table of the settings, with the keys that it may have. The table `jobs` has those of a `[jobs.NAME]`.
#[derive(Debug)]
pub(super) struct DeclaredTable {
    pub(super) name: &'static str,
    pub(super) keys: Vec<DeclaredKey>,
}

/// Every table with its keys: what is declared while an example is read.
pub(super) fn declared() -> Vec<DeclaredTable> {
    let root = tree::parse(&Source::new(Origin::File, "", "[jobs.NAME]".to_owned())).unwrap_or_default();
    let mut declared = Vec::new();
    let mut findings = Findings::default();
    Reader { root: &root, findings: &mut findings, declared: &mut declared }.read(Path::new(""));
    declared
}

fn names(declared: &[DeclaredTable]) -> Vec<&'static str> {
    declared.iter().map(|table| table.name).collect()
}

/// The tables that have a key, as they are written.
fn tables_with(declared: &[DeclaredTable], key: &str) -> Vec<String> {
    let tables = declared.iter().filter(|table| table.keys.iter().any(|known| known.name == key));
    tables
        .map(|table| if table.name == "jobs" { "[jobs.NAME]".to_owned() } else { format!("[{}]", table.name) })
        .collect()
}

/// Reads a document, table by table.
struct Reader<'a> {
    root: &'a Table,
    findings: &'a mut Findings,
    declared: &'a mut Vec<DeclaredTable>,
}

impl Reader<'_> {
    fn read(mut self, base: &Path) -> Settings {
        let queue = self.section("queue", |section| tables::queue(section, base));
        let mut worker = WorkerOptions::default();
        self.section("worker", |section| tables::worker(section, &mut worker));
        let (dir, cache_dir) = self.section("plugins", |section| tables::plugins(section, base));
        self.section("server", tables::server);
        worker.retention = self.section("retention", tables::retention);
        let default = self.section("defaults", |section| defaults::read(section, &JobTypeOptions::default()));
        let metering = default.limits.metering();
        let jobs = jobs::read(self.root.get("jobs").map(|entry| &entry.value), &default, base, self.findings);
        self.declared.push(DeclaredTable { name: "jobs", keys: jobs.keys });
        worker.job_types =
            JobTypes { default: Arc::new(default), by_type: jobs.by_type, max_payload: queue.max_payload };
        note_unused_limits(&worker, self.findings);
        let plugins = PluginOptions { dir, cache_dir, types: jobs.sources, metering };
        Settings { file: None, queue, worker, plugins, secrets: jobs.secrets, notes: Vec::new() }
    }

    fn section<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Section<'_, '_>) -> T) -> T {
        let table = self.root.get(name).map(|entry| &entry.value);
        let mut section = Section::open(name.to_owned(), table, self.findings);
        let value = read(&mut section);
        self.declared.push(DeclaredTable { name, keys: section.close() });
        value
    }
}

fn unknown_section(entry: &Entry, declared: &[DeclaredTable]) -> Problem {
    let key = shown(&entry.key);
    let problem = match entry.value.shape {
        Shape::Table(_) => Problem::new(format!("unknown section [{key}]")),
        _ => Problem::new(format!("`{key}` is not in a section")),
    };
    let elsewhere = tables_with(declared, &entry.key);
    if !elsewhere.is_empty() {
        return problem.at(&entry.key_span, format!("belongs in {}", elsewhere.join(" or ")));
    }
    let names = names(declared);
    match suggest::closest(&entry.key, names.iter().copied()) {
        Some(near) => problem.at(&entry.key_span, format!("did you mean [{near}]?")),
        None => {
            let problem = problem.at(&entry.key_span, "no such section");
            problem.with_help(format!("the sections are {}", names.join(", ")))
        }
    }
}

/// A type's own concurrency has no effect above that of the daemon.
fn note_unused_limits(options: &WorkerOptions, findings: &mut Findings) {
    for (name, own_options) in &options.job_types.by_type {
        if let Some(own) = own_options.concurrency.filter(|own| *own > options.concurrency) {
            let all = options.concurrency;
            findings.notes.push(format!("`{name}` may run {own} at once, but worker.concurrency is {all}"));
        }
    }
}
