//! From what is written to [`Settings`]: every section is read, and every problem is kept.

use std::path::Path;
use std::sync::Arc;

use super::environment::Environment;
use super::file::{self, Entry, Shape, Table};
use super::place::{Origin, Source};
use super::problem::{ConfigError, Findings, Problem, shown};
use super::section::Section;
use super::settings::Settings;
use super::{backoff, grants, jobs, plugins, queue, retention, rule, server, suggest, worker};
use crate::worker::{JobTypeOptions, JobTypes, WorkerOptions};

/// The tables of a file and their keys.
pub(super) const SECTIONS: &[(&str, &[&str])] = &[
    ("queue", queue::KEYS),
    ("worker", worker::KEYS),
    ("plugins", plugins::KEYS),
    ("server", server::KEYS),
    ("retention", retention::KEYS),
    ("defaults", rule::KEYS),
    ("jobs", jobs::KEYS),
];

/// Every key there is, such as `queue.database`, `defaults.backoff.base`, `jobs.NAME.plugin`; those of `[defaults]` stand under `[jobs.NAME]` too.
pub fn keys() -> Vec<String> {
    let sections = SECTIONS.iter().map(|(name, keys)| (if *name == "jobs" { "jobs.NAME" } else { name }, *keys));
    sections
        .chain([("defaults.backoff", backoff::KEYS), ("jobs.NAME.dirs", grants::DIR_KEYS)])
        .flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}.{key}")))
        .collect()
}

/// The tables that have this key, as they are written.
pub(super) fn sections_with(key: &str) -> Vec<&'static str> {
    SECTIONS
        .iter()
        .filter(|(_, keys)| keys.contains(&key))
        .flat_map(|(name, _)| match *name {
            "queue" => vec!["[queue]"],
            "worker" => vec!["[worker]"],
            "plugins" => vec!["[plugins]"],
            "server" => vec!["[server]"],
            "retention" => vec!["[retention]"],
            "defaults" => vec!["[defaults]", "[jobs.NAME]"],
            _ => vec!["[jobs.NAME]"],
        })
        .collect()
}

/// Checks the text of a settings file. Pure: `name` is what messages call the file, `base` the directory that relative paths start at.
///
/// # Errors
/// When anything is wrong: every problem of the text and the variables at once. Broken TOML is reported alone.
pub fn check(text: &str, name: &str, base: &Path, environment: &Environment) -> Result<Settings, ConfigError> {
    let source = Source::new(Origin::File, name, text.strip_prefix('\u{feff}').unwrap_or(text).to_owned());
    let mut root = file::parse(&source).map_err(ConfigError::new)?;
    let mut findings = Findings::default();
    environment.overlay(&mut root, &mut findings);
    let settings = read(&root, base, &mut findings);
    if findings.problems.is_empty() {
        Ok(Settings { notes: findings.notes, ..settings })
    } else {
        Err(ConfigError::new(findings.problems))
    }
}

fn read(root: &Table, base: &Path, findings: &mut Findings) -> Settings {
    for entry in root.entries.iter().filter(|entry| SECTIONS.iter().all(|(name, _)| *name != entry.key)) {
        findings.problems.push(unknown_section(entry));
    }
    let queue = queue::read(&mut section(root, "queue", findings), base);
    let (dir, cache_dir) = plugins::read(&mut section(root, "plugins", findings), base);
    server::read(&mut section(root, "server", findings));
    let retention = retention::read(&mut section(root, "retention", findings));
    let default = rule::read(&mut section(root, "defaults", findings), &JobTypeOptions::default());
    let metering = default.limits.metering();
    let jobs = jobs::read(root.get("jobs").map(|entry| &entry.value), &default, base, findings);
    let job_types = JobTypes { default: Arc::new(default), by_type: jobs.rules, max_payload: queue.max_payload };
    let worker = worker::read(&mut section(root, "worker", findings), retention, job_types);
    note_idle_limits(&worker, findings);
    let plugins = crate::plugins::PluginOptions { dir, cache_dir, types: jobs.sources, metering };
    Settings { file: None, queue, worker, plugins, secrets: jobs.secrets, notes: Vec::new() }
}

fn section<'a, 'f>(root: &'a Table, name: &str, findings: &'f mut Findings) -> Section<'a, 'f> {
    let keys = SECTIONS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, keys)| keys);
    Section::open(name.to_owned(), root.get(name).map(|entry| &entry.value), keys.to_vec(), findings)
}

fn unknown_section(entry: &Entry) -> Problem {
    let key = shown(&entry.key);
    let problem = match entry.value.shape {
        Shape::Table(_) => Problem::new(format!("unknown section [{key}]")),
        _ => Problem::new(format!("`{key}` stands outside of every section")),
    };
    let names = || SECTIONS.iter().map(|(name, _)| *name);
    let elsewhere = sections_with(&entry.key);
    if !elsewhere.is_empty() {
        return problem.at(&entry.key_place, format!("a key of {}", elsewhere.join(" and ")));
    }
    match suggest::closest(&entry.key, names()) {
        Some(near) => problem.at(&entry.key_place, format!("did you mean [{near}]?")),
        None => {
            let problem = problem.at(&entry.key_place, "no such section");
            problem.cure(format!("the sections are {}", names().collect::<Vec<_>>().join(", ")))
        }
    }
}

/// A type's own concurrency above the daemon's limits nothing.
fn note_idle_limits(options: &WorkerOptions, findings: &mut Findings) {
    for (name, rule) in &options.job_types.by_type {
        if let Some(own) = rule.concurrency.filter(|own| *own > options.concurrency) {
            let all = options.concurrency;
            findings.notes.push(format!("`{name}` may run {own} at once, but worker.concurrency stops at {all}"));
        }
    }
}
