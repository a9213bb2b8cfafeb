//! `jobq plugin inspect`: what a file is, what it imports, and what its type is granted.

use std::time::Instant;

use bytesize::ByteSize;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::needs::{self, Access, Need};
use super::plugin_file::{FileArgs, PluginFile};
use crate::cli::context::Context;
use crate::cli::exit::{Code, report_error};
use crate::cli::output::{self, Column, cell};
use crate::cli::render;
use crate::plugins::{Version, is_compiled, read};
use crate::sandbox::{Form, Kind, Metadata, Plugin};

/// Characters of a list that are shown.
const SHOWN: usize = 60;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
No guest code is run. A file that cannot be loaded is described as far as it can be read; the exit code is then 5.

Examples:
  jobq plugin inspect plugins/resize.wasm
  jobq plugin inspect resize.wasm --type thumbnails
  jobq plugin inspect resize.wasm -o json | jq '.imports[] | select(.access.is == \"missing\")'";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    file: FileArgs,
}

/// The description of a plugin, for programs.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    r#type: String,
    /// Whether the settings name the type; if not, the defaults apply.
    configured: bool,
    size_bytes: usize,
    digest: String,
    /// `component` or `core module`; null if it isn't WebAssembly.
    form: Option<&'static str>,
    /// `handler` or `program`; null if it can't be loaded.
    kind: Option<&'static str>,
    /// Why it can't be loaded.
    problem: Option<String>,
    contract: Option<String>,
    made_by: Vec<Made>,
    trace: Option<Trace>,
    memory: Memory,
    fuel: Option<u64>,
    compiled: Compiled,
    imports: Vec<Need>,
}

#[derive(Debug, Serialize)]
struct Made {
    role: String,
    name: String,
    version: String,
}

/// What the stack frames of a trap show.
#[derive(Debug, Serialize)]
struct Trace {
    names: bool,
    lines: bool,
}

#[derive(Debug, Serialize)]
struct Memory {
    minimum_bytes: Option<u64>,
    limit_bytes: usize,
}

#[derive(Debug, Serialize)]
struct Compiled {
    /// Whether compiled code was in the cache before this command.
    cached: bool,
    load_ms: f64,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let file = PluginFile::of(&args.file, context)?;
    let bytes = read(&file.file).map_err(|error| file.load_failure(&error))?;
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    let (sandbox, cache) = (file.sandbox()?, file.cache());
    let cached = is_compiled(digest, file.metering(), &sandbox, &cache)?;
    let started = Instant::now();
    let loaded = file.load(&sandbox, &cache);
    let compiled = Compiled { cached, load_ms: started.elapsed().as_micros() as f64 / 1000.0 };
    let report = report(&file, &bytes, digest, loaded.as_ref().ok(), compiled);
    let problem = loaded.as_ref().err().map(ToString::to_string);
    let report = Report { problem, ..report };
    output::one(context.format(), &report, || people(&report))?;
    match report.problem {
        None => Ok(Code::Ok),
        Some(problem) => {
            report_error(&format!("`{}` cannot be loaded: {problem}", report.file), None);
            Ok(Code::Problems)
        }
    }
}

fn report(file: &PluginFile, bytes: &[u8], digest: [u8; 32], loaded: Option<&Version>, compiled: Compiled) -> Report {
    let metadata = Metadata::of(bytes);
    let plugin = loaded.map(Version::plugin);
    let limits = &file.rule.limits;
    let tools = metadata.iter().flat_map(|metadata| metadata.tools.clone());
    Report {
        file: file.file.display().to_string(),
        r#type: file.job_type.to_string(),
        configured: file.settings.names(file.job_type.as_str()),
        size_bytes: bytes.len(),
        digest: hex::encode(digest),
        form: metadata.as_ref().map(|metadata| form(metadata.form)),
        kind: plugin.map(|plugin| kind(plugin.kind())),
        problem: None,
        contract: plugin.and_then(Plugin::contract).map(|version| format!("jobq:handler@{version}")),
        made_by: tools.map(|tool| Made { role: tool.role, name: tool.name, version: tool.version }).collect(),
        trace: metadata.map(|metadata| Trace { names: metadata.has_names, lines: metadata.has_lines }),
        memory: Memory { minimum_bytes: plugin.map(Plugin::minimum_memory), limit_bytes: limits.memory },
        fuel: limits.fuel,
        compiled,
        imports: plugin.map_or_else(Vec::new, |plugin| needs::needs(plugin, file.job_type.as_str(), &file.settings)),
    }
}

const fn form(form: Form) -> &'static str {
    match form {
        Form::Component => "component",
        Form::CoreModule => "core module",
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Handler => "handler",
        Kind::Program => "program",
    }
}

fn people(report: &Report) -> String {
    let lines = facts(report).into_iter().map(|(name, value)| format!("{name:<12}{value}"));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if !report.imports.is_empty() {
        text = format!("{text}\n\n{}", imports(&report.imports));
    }
    let missing: Vec<_> = needs::missing(&report.imports).into_iter().map(|missing| missing.text).collect();
    if !missing.is_empty() {
        let name = &report.r#type;
        text = format!(
            "{text}\n\nNot granted to `{name}`, so calls fail; to grant them, add this under [jobs.{name}] in jobq.toml:\n  {}",
            missing.join("\n  ")
        );
    }
    text
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let bytes = |bytes: u64| ByteSize::b(bytes).display().iec().to_string();
    let by = if report.configured { "configured in jobq.toml" } else { "not in jobq.toml, so the defaults apply" };
    let mut facts = vec![("file", report.file.clone()), ("type", format!("{}, {by}", report.r#type))];
    let form = report.form.unwrap_or("not WebAssembly");
    facts.push(("kind", report.kind.map_or_else(|| form.to_owned(), |kind| format!("{kind}, a {form}"))));
    if let Some(contract) = &report.contract {
        facts.push(("contract", contract.clone()));
    }
    facts.push(("size", bytes(report.size_bytes as u64)));
    facts.push(("digest", report.digest.clone()));
    if !report.made_by.is_empty() {
        let tool = |made: &Made| cell(format!("{} {}", made.name, made.version).trim_end(), SHOWN);
        facts.push(("made by", report.made_by.iter().map(tool).collect::<Vec<_>>().join(", ")));
    }
    if let Some(trace) = &report.trace {
        let shows = match (trace.names, trace.lines) {
            (_, true) => "functions with file and line",
            (true, false) => "functions without file and line: it was built without debug information",
            (false, false) => "function numbers only: its names were stripped",
        };
        facts.push(("traps show", shows.to_owned()));
    }
    let limit = bytes(report.memory.limit_bytes as u64);
    if let Some(minimum) = report.memory.minimum_bytes {
        let over =
            if minimum > report.memory.limit_bytes as u64 { ": every attempt will end as out_of_memory" } else { "" };
        facts.push(("memory", format!("starts with {}, limit {limit}{over}", bytes(minimum))));
    }
    facts.push((
        "fuel",
        report.fuel.map_or_else(|| "not counted".to_owned(), |fuel| format!("{} per attempt", render::count(fuel))),
    ));
    if report.kind.is_some() {
        let how = if report.compiled.cached { "from the cache" } else { "compiled" };
        facts.push(("loaded", format!("in {:.1}ms, {how}", report.compiled.load_ms)));
    }
    facts
}

fn imports(needs: &[Need]) -> String {
    let columns = [Column::Whole("IMPORTS"), Column::Whole("ACCESS"), Column::Cut("FUNCTIONS")];
    let access = |access: &Access| match access {
        Access::Free => "free".to_owned(),
        Access::Granted(names) => format!("granted: {}", cell(names, SHOWN)),
        Access::Missing(_) => "not granted".to_owned(),
        Access::Denied(_) => "denied".to_owned(),
    };
    let row = |need: &Need| [need.interface.clone(), access(&need.access), cell(&need.functions.join(", "), SHOWN)];
    output::table(columns, needs.iter().map(row))
}
