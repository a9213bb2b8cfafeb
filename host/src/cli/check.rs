//! `jobq check`: every problem in the settings and the plugins, without running anything.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::context::{Context, known_types};
use super::exit::{self, Code};
use super::output;
use crate::config::Settings;
use crate::plugins::{Cache, Version, load_file};
use crate::sandbox::{self, Sandbox};

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// What was found.
#[derive(Debug, Default, Serialize)]
struct Findings {
    /// These keep something from working.
    problems: Vec<String>,
    /// These are worth knowing.
    notes: Vec<String>,
    /// Types that can be served.
    types: Vec<String>,
}

pub(super) fn run(_: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = match context.load() {
        Ok(settings) => settings,
        Err(error) => {
            exit::report_settings(&error);
            let problems = error.problems().iter().map(|problem| problem.message().to_owned()).collect();
            if context.format() != output::Format::Table {
                output::one(context.format(), &Findings { problems, ..Findings::default() }, String::new)?;
            }
            return Ok(Code::Problems);
        }
    };
    let mut findings = Findings { notes: settings.notes.clone(), ..Findings::default() };
    check_plugins(&settings, &mut findings)?;
    check_directories(&settings, &mut findings);
    output::one(context.format(), &findings, || people(&findings))?;
    Ok(if findings.problems.is_empty() { Code::Ok } else { Code::Problems })
}

fn check_plugins(settings: &Settings, findings: &mut Findings) -> anyhow::Result<()> {
    let sandbox = Sandbox::new(sandbox::Options { slots: 1, max_memory: settings.max_memory() })?;
    let cache = Cache::open(&settings.plugins.cache_dir);
    let mut loaded: BTreeMap<_, Option<Version>> = BTreeMap::new();
    for name in known_types(settings) {
        let rule = settings.worker.rules.of(&name);
        let source = settings.plugins.types.get(&name);
        let file = source.map_or_else(|| format!("{name}.wasm"), |source| source.file.clone());
        let metering = rule.limits.metering();
        let path = settings.plugins.dir.join(&file);
        let version = loaded.entry((file.clone(), metering)).or_insert_with(|| {
            load_file(&path, metering, &sandbox, &cache)
                .inspect_err(|error| findings.problems.push(format!("plugin `{file}` of type `{name}`: {error}")))
                .ok()
        });
        if let Some(version) = version {
            findings.notes.extend(ungranted(&name, settings, version));
            findings.types.push(name);
        }
    }
    stray(settings, findings);
    Ok(())
}

/// What the plugin of a type imports although the type is not granted it: it runs, and is denied when it calls.
fn ungranted(name: &str, settings: &Settings, version: &Version) -> Vec<String> {
    let rule = settings.worker.rules.of(name);
    let imports = version.plugin().imports();
    let has = |prefix: &str| imports.iter().any(|import| import.starts_with(prefix));
    let mut notes = Vec::new();
    let mut note = |what: &str, line: &str| {
        notes.push(format!("type `{name}` imports {what}, which it is not granted; under `[jobs.{name}]`: {line}"));
    };
    if has("jobq:handler/queue@") && rule.grants.enqueue.is_empty() {
        note("jobq:handler/queue", "enqueue = [\"other_type\"]");
    }
    if has("wasi:http/outgoing-handler@") {
        notes.push(format!("type `{name}` imports wasi:http, and this version denies every request"));
    }
    let minimum = version.plugin().minimum_memory();
    if minimum > rule.limits.memory as u64 {
        let minimum = minimum.div_ceil(1 << 20);
        notes.push(format!("type `{name}` starts with {minimum} MiB of memory, more than its limit; every attempt will end as out_of_memory"));
    }
    notes
}

/// Files that nobody will ever run.
fn stray(settings: &Settings, findings: &mut Findings) {
    for (name, source) in &settings.plugins.types {
        let own = format!("{name}.wasm");
        let named: BTreeSet<&str> = settings.plugins.types.values().map(|other| other.file.as_str()).collect();
        if source.file != own && !named.contains(own.as_str()) && settings.plugins.dir.join(&own).is_file() {
            findings.notes.push(format!("`{own}` serves nothing: `[jobs.{name}]` names `{}`", source.file));
        }
    }
}

fn check_directories(settings: &Settings, findings: &mut Findings) {
    if !settings.plugins.dir.is_dir() {
        findings.problems.push(format!("the plugin directory `{}` does not exist", settings.plugins.dir.display()));
    }
    for (name, rule) in &settings.worker.rules.by_type {
        for dir in rule.grants.dirs.iter().filter(|dir| !dir.host.is_dir()) {
            let host = dir.host.display();
            findings.problems.push(format!("`dirs` of type `{name}`: there is no directory `{host}`; create it"));
        }
    }
}

fn people(findings: &Findings) -> String {
    let mut lines = Vec::new();
    lines.extend(findings.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.extend(findings.notes.iter().map(|note| format!("note: {note}")));
    let types = if findings.types.is_empty() { "none".to_owned() } else { findings.types.join(", ") };
    lines.push(format!(
        "{} problems, {} notes; types that can be served: {types}",
        findings.problems.len(),
        findings.notes.len()
    ));
    lines.join("\n")
}
