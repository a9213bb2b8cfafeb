//! `jobq init`: a settings file and a plugin directory to start with.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::context::Context;
use super::exit::{Code, Failure};
use super::output::{self, talk};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It creates jobq.toml, plugins/ and a .gitignore for the database, and never overwrites a file.

Examples:
  jobq init
  jobq init queue                    in a directory of its own";

/// The settings file.
const SETTINGS: &str = include_str!("init/jobq.toml");

/// The database with the files beside it, and the cache of compiled plugins.
const IGNORED: &str = "/jobq.db*\n/.jobq/\n";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory; it is created if it does not exist [default: .]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What was created, for programs.
#[derive(Debug, Serialize)]
struct Report {
    dir: String,
    files: Vec<&'static str>,
    next: Vec<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let dir = args.dir.as_deref().unwrap_or(Path::new(""));
    let plugins = dir.join("plugins");
    if plugins.symlink_metadata().is_ok() && !plugins.is_dir() {
        return Err(exists(&plugins).hint("the plugins would be there: move it, or name another directory").into());
    }
    if let Some(dir) = &args.dir {
        fs::create_dir_all(dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
    }
    let mut files = Vec::new();
    if !create(&dir.join("jobq.toml"), SETTINGS)? {
        let failure = exists(&dir.join("jobq.toml"));
        return Err(failure
            .hint("`jobq check` shows whether it works; `jobq init DIR` starts in another directory")
            .into());
    }
    files.push("jobq.toml");
    if !plugins.exists() {
        fs::create_dir(&plugins).with_context(|| format!("cannot create `{}`", plugins.display()))?;
        files.push("plugins/");
    }
    if create(&dir.join(".gitignore"), IGNORED)? {
        files.push(".gitignore");
    } else {
        let lines = IGNORED.lines().collect::<Vec<_>>().join(" and ");
        talk(format!("note: `.gitignore` exists and was not changed; {lines} belong in it"));
    }
    let shown = args.dir.as_deref().unwrap_or(Path::new("."));
    let report = Report { dir: shown.display().to_string(), files, next: next(args.dir.as_deref()) };
    output::one(context.format(), &report, || people(&report))?;
    Ok(Code::Ok)
}

fn exists(path: &Path) -> Failure {
    Failure::new(Code::Conflict, format!("`{}` already exists; nothing was changed", path.display()))
}

/// Writes a new file; `false` if there is something already.
fn create(path: &Path, text: &str) -> anyhow::Result<bool> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        written => written.map(|()| true).with_context(|| format!("cannot write `{}`", path.display())),
    }
}

fn next(dir: Option<&Path>) -> Vec<String> {
    let enter = dir.map(|dir| format!("cd {}", dir.display()));
    let then = ["jobq plugin new hello --lang rust", "jobq check", "jobq run"].map(str::to_owned);
    enter.into_iter().chain(then).collect()
}

fn people(report: &Report) -> String {
    let explained = |step: &String| match step.as_str() {
        "jobq check" => "# whether the settings and the plugins work",
        "jobq run" => "# the daemon",
        step if step.starts_with("jobq plugin new") => "# a handler to start from; its .wasm belongs in plugins/",
        _ => "",
    };
    let next = report.next.iter().map(|step| format!("  {step:<36}{}", explained(step)).trim_end().to_owned());
    let next = next.collect::<Vec<_>>().join("\n");
    format!("created in {}:\n  {}\n\nnext:\n{next}", report.dir, report.files.join("\n  "))
}
