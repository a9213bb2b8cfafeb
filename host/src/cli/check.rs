//! `jobq check`: every problem in the settings, the plugins and the machine, without running a handler.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::context::Context;
use super::exit::Code;
use super::output::{self, Format};
use super::plugin::needs;
use super::{requirements, terminal};
use crate::config::{self, Look, Problem, Settings, Written};
use crate::plugins::{Cache, NotServed, PluginTypes, Version, load_file};
use crate::queue::JobType;
use crate::sandbox::{Sandbox, SandboxOptions};
use crate::worker::ServedTypes;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It tries what `jobq run` needs, but runs no handler. Exit code 5 means that there are problems; notes do not count.

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
    /// Something does not work because of these.
    problems: Vec<Problem>,
    /// Worth knowing, but no problem.
    notes: Vec<String>,
    /// Imports that are not granted. Standard libraries import them even if the handler does not use them.
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

/// A problem for programs; without a location if it does not belong to a line of a file.
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
        let location = problem.location();
        Self {
            message: problem.message(),
            file: location.map(|(file, ..)| file),
            line: location.map(|(_, line, _)| line),
            column: location.map(|(.., column)| column),
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
            let mut findings = inspect(with_secrets.as_ref().unwrap_or(&settings))?;
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

/// Compares valid settings with what is on this machine.
fn inspect(settings: &Settings) -> anyhow::Result<Findings> {
    let written = Written::of(settings);
    let types = PluginTypes::read(&settings.plugins);
    let mut findings = Findings { notes: settings.notes.clone(), ..Findings::default() };
    check_machine(settings, &written, &types, &mut findings);
    check_directories(settings, &written, &mut findings);
    check_plugins(settings, &written, &types, &mut findings)?;
    note_unused_files(settings, &written, &mut findings);
    note_native_code(settings, &mut findings);
    check_named_types(settings, &written, &types, &mut findings);
    Ok(findings)
}

/// What `jobq run` needs of the machine: a database that it can write, a cache, enough memory.
fn check_machine(settings: &Settings, written: &Written, types: &PluginTypes, findings: &mut Findings) {
    if let Some(message) = requirements::database_obstacle(&settings.queue.database) {
        let help = "`jobq run` needs write access to the database and its directory; `queue.database` names the file";
        findings.problems.push(written.problem(&["queue", "database"], message, "cannot be used", help));
    }
    if let Some(obstacle) = Cache::obstacle(&settings.plugins.cache_dir) {
        let dir = settings.plugins.cache_dir.display();
        let note =
            format!("compiled plugins are not cached in `{dir}`, and every start compiles them again: {obstacle}");
        findings.notes.push(written.note(&["plugins", "cache_dir"], &note));
    }
    let slots = settings.worker.concurrency.get();
    let served = types.names().filter(|name| settings.worker.types.includes(name));
    let limits = served.map(|name| {
        let rule = settings.worker.job_types.of(name);
        (rule.limits.memory as u64, rule.concurrency.map(|concurrency| concurrency.get()))
    });
    if let Some(note) = requirements::note_memory(slots, limits.collect()) {
        findings.notes.push(written.note(&["worker", "concurrency"], &note));
    }
}

fn check_plugins(
    settings: &Settings,
    written: &Written,
    types: &PluginTypes,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let sandbox = Sandbox::new(SandboxOptions { slots: 1, max_memory: settings.max_memory() })?;
    let cache_dir = &settings.plugins.cache_dir;
    let cache = if Cache::obstacle(cache_dir).is_none() { Cache::open(cache_dir) } else { Cache::none() };
    let mut loaded: BTreeMap<_, Option<Version>> = BTreeMap::new();
    for name in types.names() {
        let source = match types.serving(name) {
            Ok(source) => source,
            Err(why) => {
                let message = why.message(name);
                let help = help_for(name, types, settings);
                let label = "this type cannot be served";
                findings.problems.push(written.problem(&["jobs", name, "plugin"], message, label, &help));
                continue;
            }
        };
        let file = &source.file;
        let version = loaded.entry((file.clone(), source.metering)).or_insert_with(|| {
            load_file(&settings.plugins.dir.join(file), source.metering, &sandbox, &cache)
                .inspect_err(|error| {
                    let message = format!("plugin `{file}` of type `{name}`: {error}");
                    let label = "this type cannot be served";
                    findings.problems.push(written.problem(
                        &["jobs", name, "plugin"],
                        message,
                        label,
                        HELP_WITH_PLUGIN,
                    ));
                })
                .ok()
        });
        if let Some(version) = version {
            check_imports(name, settings, version, written, findings);
            if settings.worker.types.includes(name) {
                findings.types.push(name.to_owned());
            }
        }
    }
    Ok(())
}

/// What to do about a type without a plugin. Its table may be misspelt; then the file of the right name runs without its grants.
fn help_for(name: &str, types: &PluginTypes, settings: &Settings) -> String {
    let unnamed = types.names().filter(|other| !settings.names(other));
    match config::suggest::closest(name, unnamed) {
        Some(near) if settings.names(name) => {
            format!(
                "did you mean `[jobs.{near}]`? Without it, {near}.wasm runs with the defaults and without these grants"
            )
        }
        _ => HELP_WITH_PLUGIN.to_owned(),
    }
}

const HELP_WITH_PLUGIN: &str = "put a .wasm that loads into the plugin directory, or remove the type from the settings";

/// Imports of a plugin that its type is not granted. The plugin runs, and is denied when it calls them.
fn check_imports(name: &str, settings: &Settings, version: &Version, written: &Written, findings: &mut Findings) {
    let rule = settings.worker.job_types.of(name);
    let missing = needs::missing(&needs::needs(version.plugin(), name, settings));
    let (unasked, wanted): (Vec<_>, Vec<_>) = missing.into_iter().partition(|missing| missing.is_unasked);
    for what in wanted {
        let note = format!("type `{name}` imports {}, which is not granted under `[jobs.{name}]`", what.text);
        findings.notes.push(written.note(&["jobs", name], &note));
    }
    for what in unasked {
        findings.ungranted.push(format!("`{name}` imports {}, not granted under `[jobs.{name}]`", what.text));
    }
    let minimum = version.plugin().minimum_memory();
    if minimum > rule.limits.memory as u64 {
        let minimum = minimum.div_ceil(1 << 20);
        let note = format!(
            "type `{name}` starts with {minimum} MiB of memory, more than its limit: every attempt ends as out_of_memory"
        );
        findings.notes.push(written.note(&["jobs", name], &note));
    }
}

/// Types that `worker.types` or a grant names, and that nothing serves.
fn check_named_types(settings: &Settings, written: &Written, types: &PluginTypes, findings: &mut Findings) {
    for (message, help) in unserved(settings, types) {
        findings.problems.push(written.problem(&["worker", "types"], message, "not served", &help));
    }
    for (name, rule) in &settings.worker.job_types.by_type {
        for follow_up in rule.grants.enqueue.iter().filter(|name| types.serving(name).is_err()) {
            let note = format!("type `{name}` may enqueue `{follow_up}`, which no plugin serves");
            findings.notes.push(written.note(&["jobs", name.as_str(), "enqueue"], &note));
        }
    }
}

/// Types of `worker.types` that nothing serves, each with what to do about it.
pub(super) fn unserved_types(settings: &Settings) -> Vec<(String, String)> {
    unserved(settings, &PluginTypes::read(&settings.plugins))
}

fn unserved(settings: &Settings, types: &PluginTypes) -> Vec<(String, String)> {
    let ServedTypes::Only(named) = &settings.worker.types else { return Vec::new() };
    let unserved = named.iter().map(JobType::as_str).filter_map(|name| Some((name, types.serving(name).err()?)));
    // A type of the settings without its file is a problem of its own.
    let unserved = unserved.filter(|(_, why)| !matches!(why, NotServed::FileMissing { .. }));
    let finding = |(name, why): (&str, NotServed)| {
        let help = match (&why, config::suggest::closest(name, types.names())) {
            (NotServed::ServesOthers { .. }, _) => {
                format!("add `[jobs.{name}]`, or take `{name}` out of `worker.types`")
            }
            (_, Some(near)) => format!("did you mean `{near}`?"),
            (_, None) => HELP_WITH_PLUGIN.to_owned(),
        };
        (format!("`worker.types` names `{name}`, but {}", why.message(name)), help)
    };
    unserved.map(finding).collect()
}

/// Files that no type uses.
fn note_unused_files(settings: &Settings, written: &Written, findings: &mut Findings) {
    let named: BTreeSet<&str> = settings.plugins.types.values().map(|source| source.file.as_str()).collect();
    for (name, source) in &settings.plugins.types {
        let own = format!("{name}.wasm");
        if source.file != own && !named.contains(own.as_str()) && settings.plugins.dir.join(&own).is_file() {
            let note = format!("`{own}` serves nothing: `[jobs.{name}]` names `{}`", source.file);
            findings.notes.push(written.note(&["jobs", name, "plugin"], &note));
        }
    }
}

/// Compiled code, which is never run from the plugin directory.
fn note_native_code(settings: &Settings, findings: &mut Findings) {
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
        let help = "create it and put the handlers there: NAME.wasm serves the type NAME";
        findings.problems.push(written.problem(&["plugins", "dir"], message, "does not exist", help));
    }
    for (name, message) in missing_directories(settings) {
        let path = ["jobs", name, "dirs"];
        findings.problems.push(written.problem(&path, message, "not found", "create it, or remove the grant"));
    }
}

/// Granted directories that do not exist, by type. Every attempt of such a type fails.
pub(super) fn missing_directories(settings: &Settings) -> Vec<(&str, String)> {
    let mut missing = Vec::new();
    for (name, rule) in &settings.worker.job_types.by_type {
        for dir in rule.grants.dirs.iter().filter(|dir| !dir.host.is_dir()) {
            let what = if dir.host.exists() { "is not a directory" } else { "does not exist" };
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
            "Not granted, but standard libraries import these even if the handler does not use them:\n  {}\n",
            findings.ungranted.join("\n  ")
        ));
    }
    let types = if findings.types.is_empty() { "none".to_owned() } else { findings.types.join(", ") };
    let count = |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    let (problems, notes) = (count(findings.problems.len(), "problem"), count(findings.notes.len(), "note"));
    parts.push(format!("{problems}, {notes}; types that can be served: {types}"));
    parts.concat()
}
