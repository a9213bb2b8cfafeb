//! `jobq check`: every problem in the settings and the plugins, without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::context::{Context, known_types};
use super::exit::Code;
use super::output::{self, Format};
use super::plugin::needs;
use super::terminal;
use crate::config::{self, Look, Problem, Settings, Written};
use crate::plugins::{Cache, Version, load_file};
use crate::queue::JobType;
use crate::sandbox::{self, Sandbox};
use crate::worker::ServedTypes;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It runs no handler. Exit code 5 says that there are problems; notes do not count.

Examples:
  jobq check
  jobq check --config staging.toml -o json
  jobq check --schema > jobq.schema.json           for editors: #:schema ./jobq.schema.json";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the JSON Schema of the settings file instead
    #[arg(long)]
    schema: bool,
}

/// What was found.
#[derive(Debug, Default)]
struct Findings {
    /// These keep something from working.
    problems: Vec<Problem>,
    /// These are worth knowing.
    notes: Vec<String>,
    /// Imports that are not granted, and that standard libraries bring along whether they are used or not.
    ungranted: Vec<String>,
    /// Types that can be served.
    types: Vec<String>,
}

/// The findings for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    problems: Vec<Found<'a>>,
    notes: &'a [String],
    ungranted: &'a [String],
    types: &'a [String],
}

/// A problem for programs; what has no place in a file has none here.
#[derive(Debug, Serialize)]
struct Found<'a> {
    message: &'a str,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    expected: Option<&'a str>,
    help: Option<&'a str>,
}

impl<'a> From<&'a Problem> for Found<'a> {
    fn from(problem: &'a Problem) -> Self {
        let place = problem.location();
        Self {
            message: problem.message(),
            file: place.map(|(file, ..)| file),
            line: place.map(|(_, line, _)| line),
            column: place.map(|(.., column)| column),
            expected: problem.expected(),
            help: problem.help(),
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    if args.schema {
        output::print(&serde_json::to_string_pretty(&config::schema())?)?;
        return Ok(Code::Ok);
    }
    let findings = match context.load() {
        Ok(settings) => {
            let with_secrets = settings.clone().with_secrets(|name| std::env::var_os(name));
            let mut findings = look_around(with_secrets.as_ref().unwrap_or(&settings))?;
            findings.problems.extend(with_secrets.err().iter().flat_map(|error| error.problems().to_vec()));
            findings
        }
        Err(error) => Findings { problems: error.problems().to_vec(), ..Findings::default() },
    };
    let Findings { problems, notes, ungranted, types } = &findings;
    let report = Report { problems: problems.iter().map(Found::from).collect(), notes, ungranted, types };
    match context.format() {
        Format::Table => output::print(&people(&findings))?,
        format => output::one(format, &report, String::new)?,
    }
    Ok(if problems.is_empty() { Code::Ok } else { Code::Problems })
}

/// What is right by itself, and yet does not fit what lies in the directories.
fn look_around(settings: &Settings) -> anyhow::Result<Findings> {
    let written = Written::of(settings);
    let mut findings = Findings { notes: settings.notes.clone(), ..Findings::default() };
    check_directories(settings, &written, &mut findings);
    check_plugins(settings, &written, &mut findings)?;
    stray(settings, &written, &mut findings);
    native(settings, &mut findings);
    unknown_types(settings, &written, &mut findings);
    Ok(findings)
}

fn check_plugins(settings: &Settings, written: &Written, findings: &mut Findings) -> anyhow::Result<()> {
    let sandbox = Sandbox::new(sandbox::SandboxOptions { slots: 1, max_memory: settings.max_memory() })?;
    let cache = Cache::open(&settings.plugins.cache_dir);
    let mut loaded: BTreeMap<_, Option<Version>> = BTreeMap::new();
    for name in known_types(settings) {
        let rule = settings.worker.job_types.of(&name);
        let source = settings.plugins.types.get(&name);
        let file = source.map_or_else(|| format!("{name}.wasm"), |source| source.file.clone());
        let metering = rule.limits.metering();
        let path = settings.plugins.dir.join(&file);
        let version = loaded.entry((file.clone(), metering)).or_insert_with(|| {
            load_file(&path, metering, &sandbox, &cache)
                .inspect_err(|error| {
                    let message = format!("plugin `{file}` of type `{name}`: {error}");
                    let label = "this type cannot be served";
                    let cure = cure_for(&name, &path, settings);
                    findings.problems.push(written.problem(&["jobs", &name, "plugin"], message, label, &cure));
                })
                .ok()
        });
        if let Some(version) = version {
            check_imports(&name, settings, version, written, findings);
            if settings.worker.types.includes(&name) {
                findings.types.push(name);
            }
        }
    }
    Ok(())
}

/// A table without a file is often a misspelt one, and then the file of the right name is served without its grants.
fn cure_for(name: &str, path: &Path, settings: &Settings) -> String {
    let unnamed = known_types(settings).into_iter().filter(|other| !settings.names(other)).collect::<Vec<_>>();
    match config::suggest::closest(name, unnamed.iter().map(String::as_str)) {
        Some(near) if !path.exists() => {
            format!(
                "did you mean `[jobs.{near}]`? As it stands, {near}.wasm runs by the defaults, without these grants"
            )
        }
        _ => CURE.to_owned(),
    }
}

/// What helps against a plugin that does not load.
const CURE: &str = "put a .wasm that loads into the plugin directory, or take the type out of the settings";

/// What the plugin of a type imports although the type is not granted it: it runs, and is denied when it calls.
fn check_imports(name: &str, settings: &Settings, version: &Version, written: &Written, findings: &mut Findings) {
    let rule = settings.worker.job_types.of(name);
    let missing = needs::missing(&needs::needs(version.plugin(), name, settings));
    let (unasked, wanted): (Vec<_>, Vec<_>) = missing.into_iter().partition(|missing| missing.is_unasked);
    for what in wanted {
        let note = format!("type `{name}` imports {}, which it is not granted under `[jobs.{name}]`", what.text);
        findings.notes.push(written.note(&["jobs", name], &note));
    }
    for what in unasked {
        findings.ungranted.push(format!("`{name}` imports {}, not granted under `[jobs.{name}]`", what.text));
    }
    let minimum = version.plugin().minimum_memory();
    if minimum > rule.limits.memory as u64 {
        let minimum = minimum.div_ceil(1 << 20);
        let note = format!(
            "type `{name}` starts with {minimum} MiB of memory, more than its limit; every attempt will end as out_of_memory"
        );
        findings.notes.push(written.note(&["jobs", name], &note));
    }
}

/// Types that are named where they are wanted, and that nothing serves.
fn unknown_types(settings: &Settings, written: &Written, findings: &mut Findings) {
    let known = known_types(settings);
    let is_unknown = |name: &str| !known.iter().any(|other| other == name);
    for (message, cure) in unserved_types(settings) {
        findings.problems.push(written.problem(&["worker", "types"], message, "no such type", &cure));
    }
    for (name, rule) in &settings.worker.job_types.by_type {
        for follow_up in rule.grants.enqueue.iter().filter(|name| is_unknown(name)) {
            let note = format!("type `{name}` may enqueue `{follow_up}`, which no plugin serves");
            findings.notes.push(written.note(&["jobs", name.as_str(), "enqueue"], &note));
        }
    }
}

/// Types of `worker.types` that nothing serves, each with its cure.
pub(super) fn unserved_types(settings: &Settings) -> Vec<(String, String)> {
    let ServedTypes::Only(types) = &settings.worker.types else { return Vec::new() };
    let known = known_types(settings);
    let unserved = types.iter().map(JobType::as_str).filter(|name| !known.iter().any(|other| other == name));
    let finding = |name: &str| {
        let cure = match config::suggest::closest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => CURE.to_owned(),
        };
        (format!("`worker.types` names `{name}`, which no plugin serves"), cure)
    };
    unserved.map(finding).collect()
}

/// Files that nobody will ever run.
fn stray(settings: &Settings, written: &Written, findings: &mut Findings) {
    for (name, source) in &settings.plugins.types {
        let own = format!("{name}.wasm");
        let named: BTreeSet<&str> = settings.plugins.types.values().map(|other| other.file.as_str()).collect();
        if source.file != own && !named.contains(own.as_str()) && settings.plugins.dir.join(&own).is_file() {
            let note = format!("`{own}` serves nothing: `[jobs.{name}]` names `{}`", source.file);
            findings.notes.push(written.note(&["jobs", name, "plugin"], &note));
        }
    }
}

/// Compiled code that somebody expects to be run.
fn native(settings: &Settings, findings: &mut Findings) {
    let entries = std::fs::read_dir(&settings.plugins.dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut native: Vec<_> = names.filter(|name| name.ends_with(".cwasm")).collect();
    native.sort();
    findings.notes.extend(native.iter().map(|name| {
        format!("`{name}` serves nothing: native code is never taken from the plugin directory, only the .wasm it was made from")
    }));
}

fn check_directories(settings: &Settings, written: &Written, findings: &mut Findings) {
    let plugins = &settings.plugins.dir;
    if !plugins.is_dir() {
        let message = format!("there is no plugin directory `{}`", plugins.display());
        let cure = "make it, and put the handlers there: NAME.wasm serves the type NAME";
        findings.problems.push(written.problem(&["plugins", "dir"], message, "not there", cure));
    }
    for (name, message) in missing_directories(settings) {
        let path = ["jobs", name, "dirs"];
        findings.problems.push(written.problem(&path, message, "not there", "make it, or take the grant out"));
    }
}

/// Directories that types are granted and that are none, by type: every attempt of it will fail.
pub(super) fn missing_directories(settings: &Settings) -> Vec<(&str, String)> {
    let mut missing = Vec::new();
    for (name, rule) in &settings.worker.job_types.by_type {
        for dir in rule.grants.dirs.iter().filter(|dir| !dir.host.is_dir()) {
            let what = if dir.host.exists() { "is no directory" } else { "is not there" };
            let host = dir.host.display();
            missing.push((name.as_str(), format!("type `{name}` is granted the directory `{host}`, which {what}")));
        }
    }
    missing
}

fn people(findings: &Findings) -> String {
    let look = if terminal::has_colour(&std::io::stdout()) { Look::Colour } else { Look::Plain };
    let mut parts = Vec::new();
    if !findings.problems.is_empty() {
        parts.push(config::render(&findings.problems, look) + "\n");
    }
    parts.extend(findings.notes.iter().map(|note| format!("note: {note}\n")));
    if !findings.ungranted.is_empty() {
        parts.push(format!(
            "Standard libraries import these whether they are needed or not:\n  {}\n",
            findings.ungranted.join("\n  ")
        ));
    }
    let types = if findings.types.is_empty() { "none".to_owned() } else { findings.types.join(", ") };
    let count = |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    let (problems, notes) = (count(findings.problems.len(), "problem"), count(findings.notes.len(), "note"));
    parts.push(format!("{problems}, {notes}; types that can be served: {types}"));
    parts.concat()
}
