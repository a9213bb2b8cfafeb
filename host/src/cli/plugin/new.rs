//! `jobq plugin new`: creates a directory with a handler that builds, from a template in the binary.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;

use super::template::{self, TemplateFile};
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output;
use crate::queue::JobType;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
The new directory has a README with what to install, how to build and how to test. Nothing is downloaded.

Examples:
  jobq plugin new resize --lang rust
  jobq plugin new nightly_report --lang go --program      stdin to stdout, no bindings
  jobq plugin new resize --lang python --dir handlers     creates handlers/resize/";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The name of the plugin, and of the job type that it serves
    name: String,
    /// The language
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    lang: String,
    /// Create a program, with the payload on stdin and the result on stdout, instead of a handler
    #[arg(long)]
    program: bool,
    /// Where to create the directory
    #[arg(long, value_name = "PARENT", default_value = ".")]
    dir: PathBuf,
}

/// The languages with their aliases.
fn languages() -> PossibleValuesParser {
    let value = |language| {
        let others: &[&str] = match language {
            "go" => &["golang"],
            "js" => &["javascript"],
            "python" => &["py"],
            "rust" => &["rs"],
            "ts" => &["typescript"],
            _ => &[],
        };
        PossibleValue::new(language).aliases(others.iter().copied())
    };
    PossibleValuesParser::new(template::languages().into_iter().map(value))
}

/// What was created, for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    dir: String,
    files: Vec<&'a str>,
    next: [String; 3],
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    check_name(&args.name)?;
    let language = canonical(&args.lang);
    let available = template::languages_with(args.program);
    if !available.contains(&language) {
        let (this, other) = if args.program { ("program", "without") } else { ("handler", "with") };
        let failure = Failure::usage(format!("there is no {this} template for {language}"));
        let all = available.join(", ");
        let hint = format!("{this} templates exist for {all}; {language} has a template {other} `--program`");
        return Err(failure.hint(hint).into());
    }
    let files = template::files(language, args.program, &args.name);
    let target = if args.dir == Path::new(".") { PathBuf::from(&args.name) } else { args.dir.join(&args.name) };
    create(&args.dir, &target, &files)?;
    let report = Report {
        dir: target.display().to_string(),
        files: files.iter().map(|file| file.path.as_str()).collect(),
        next: next(&target, &args.name, &files),
    };
    output::one(context.format(), &report, || people(&report))?;
    Ok(Code::Ok)
}

/// The name must be a job type, and safe as a directory name and on a command line.
fn check_name(name: &str) -> Result<(), Failure> {
    JobType::parse(name).map_err(|error| Failure::usage(error.to_string()))?;
    if name.starts_with(['.', '-']) {
        let failure = Failure::usage(format!("a plugin name cannot start with `{}`: `{name}`", &name[..1]));
        return Err(failure.hint("hidden files are not served, and `-` starts an option"));
    }
    Ok(())
}

/// The language of an alias. clap passes aliases on as they were typed.
fn canonical(typed: &str) -> &'static str {
    let parser = languages();
    let values = clap::builder::TypedValueParser::possible_values(&parser);
    let named = values.into_iter().flatten().find(|value| value.matches(typed, false));
    let name = named.map(|value| value.get_name().to_owned()).unwrap_or_default();
    template::languages().into_iter().find(|language| *language == name).unwrap_or("")
}

/// Creates all files in a temporary directory and renames that to the target, so that a failure leaves nothing behind.
fn create(parent: &Path, target: &Path, files: &[TemplateFile]) -> anyhow::Result<()> {
    if !parent.is_dir() {
        let failure = Failure::new(Code::NotFound, format!("there is no directory `{}`", parent.display()));
        return Err(failure.hint("create it first, or choose another one with `--dir`").into());
    }
    if is_taken(target) {
        return Err(taken(target).into());
    }
    let temporary = tempfile::Builder::new().prefix(".jobq-new-").tempdir_in(parent);
    let temporary = temporary.with_context(|| format!("cannot write to `{}`", parent.display()))?;
    let dir = temporary.path().join("plugin");
    for file in files {
        write(&dir.join(&file.path), file).with_context(|| format!("cannot write `{}`", file.path))?;
    }
    match fs::rename(&dir, target) {
        Err(error) if is_taken(target) => Err(anyhow::Error::from(error).context(taken(target))),
        moved => moved.with_context(|| format!("cannot create `{}`", target.display())),
    }
}

/// Whether something other than an empty directory exists there.
fn is_taken(target: &Path) -> bool {
    match fs::symlink_metadata(target) {
        Err(_) => false,
        Ok(meta) => !meta.is_dir() || fs::read_dir(target).map_or(true, |mut entries| entries.next().is_some()),
    }
}

fn taken(target: &Path) -> Failure {
    let failure = Failure::new(Code::Conflict, format!("`{}` exists and is not an empty directory", target.display()));
    failure.hint("nothing was changed; choose another name, or another directory with `--dir`")
}

fn write(path: &Path, file: &TemplateFile) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, &file.content)?;
    if file.executable {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The commands from here to a first attempt.
fn next(target: &Path, name: &str, files: &[TemplateFile]) -> [String; 3] {
    let has = |path: &str| files.iter().any(|file| file.path == path);
    let build = if has("build.sh") {
        "./build.sh"
    } else if has("Makefile") {
        "make"
    } else if has("package.json") {
        "npm install && npm run build"
    } else {
        "cat README.md"
    };
    [format!("cd {}", target.display()), build.to_owned(), format!("jobq plugin run {name}.wasm '{{\"n\": 2}}'")]
}

fn people(report: &Report<'_>) -> String {
    let [enter, build, try_it] = &report.next;
    format!(
        "created {}:\n  {}\n\nnext:\n  {enter}\n  {build:<44}  # see README.md for what it needs and how to test\n  \
         {try_it:<44}  # one attempt, no daemon",
        report.dir,
        report.files.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template_file(path: &str, content: &str) -> TemplateFile {
        let executable = content.starts_with("#!");
        TemplateFile { path: path.to_owned(), content: content.as_bytes().to_vec(), executable }
    }

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn scripts_are_executable_and_no_temporary_files_are_left() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("x");
        let files = [template_file("README.md", "text"), template_file("bin/run", "#!/bin/sh\n")];
        create(parent.path(), &target, &files).unwrap();
        assert_eq!(names(parent.path()), ["x"]);
        let mode = |path: &str| fs::metadata(target.join(path)).unwrap().permissions().mode() & 0o111;
        assert_eq!((mode("README.md"), mode("bin/run")), (0, 0o111));
    }

    #[test]
    fn a_failure_halfway_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let files = [template_file("a", "a file"), template_file("a/b", "below a file")];
        assert!(create(parent.path(), &parent.path().join("x"), &files).is_err());
        assert!(names(parent.path()).is_empty(), "{:?}", names(parent.path()));
    }

    #[test]
    fn every_language_is_its_own_alias() {
        for language in template::languages() {
            assert_eq!(canonical(language), language);
        }
        assert_eq!(canonical("cobol"), "");
    }
}
