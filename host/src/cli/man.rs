//! `jobq man`: the manual, made from the same text as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use super::exit::{self, Code, Failure};
use super::output;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq man | man -l -                              read the page of jobq
  jobq man --dir ~/.local/share/man/man1           one page for each command; then: man jobq-enqueue";

const ENVIRONMENT: &str = "\
JOBQ_CONFIG          the settings file, where there is no --config
JOBQ_SECTION__KEY    a setting, such as JOBQ_WORKER__CONCURRENCY=8; it overrides the file
JOBQ_LOG             what is logged, such as debug or jobq::worker=debug
NO_COLOR             no colour, if it is set and not empty";

const FILES: &str = "\
jobq.toml            the settings; paths in it are relative to it
jobq.db              the queue, and beside it jobq.db-wal and jobq.db-shm while it is open
jobq.db-jobq-*       one file for each daemon that runs, which proves that it does
plugins/             the handlers, NAME.wasm for the type NAME
.jobq/cache/         compiled handlers; may be deleted";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write jobq.1 and a page for each command into this directory, which is made
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &Args, command: Command) -> anyhow::Result<Code> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        output::print(page(&command)?.trim_end_matches('\n'))?;
        return Ok(Code::Ok);
    };
    fs::create_dir_all(dir)
        .and_then(|()| write_all(&command, dir))
        .map_err(|error| Failure::usage(format!("cannot write the pages into `{}`: {error}", dir.display())))?;
    output::talk(format!("the pages are in {}", dir.display()));
    Ok(Code::Ok)
}

/// Writes the page of a command and of all its commands, without those that are hidden.
fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    fs::write(dir.join(format!("{}.1", page_name(command))), page(command)?)?;
    shown(command).try_for_each(|inner| write_all(inner, dir))
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of one command.
fn page(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone()).source(concat!("jobq ", env!("CARGO_PKG_VERSION"))).manual("jobq manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The exit codes have a section of their own.
    let help = help.split(exit::HELP).collect::<String>();
    for (name, text) in sections(&help) {
        page += &section(name, text);
    }
    page += &section("EXIT STATUS", exit::HELP.split_once('\n').map_or("", |(_, codes)| codes));
    page += &section("ENVIRONMENT", ENVIRONMENT);
    page += &section("FILES", FILES);
    page += &format!(".SH SEE ALSO\n{}\n", see_also(command).join(", "));
    Ok(page)
}

/// The parts of what `--help` says at its end: notes, and a section for each list with a heading.
fn sections(help: &str) -> Vec<(&'static str, &str)> {
    let mut sections = Vec::new();
    for block in help.trim().split("\n\n").filter(|block| !block.is_empty()) {
        match block.strip_prefix("Examples:\n") {
            Some(examples) => sections.push(("EXAMPLES", examples)),
            None => sections.push(("NOTES", block)),
        }
    }
    sections
}

fn section(name: &str, text: &str) -> String {
    format!(".SH {name}\n{}", verbatim(text))
}

/// References to the pages of this command's commands and of jobq.
fn see_also(command: &Command) -> Vec<String> {
    let is_root = page_name(command) == "jobq";
    let root = (!is_root).then_some("jobq");
    let pages = root.into_iter().chain(shown(command).map(page_name));
    pages.map(|page| format!("\\fB{}\\fR(1)", page.replace('-', "\\-"))).collect()
}

/// Text whose lines roff leaves as they are.
fn verbatim(text: &str) -> String {
    let line = |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-"));
    format!(".nf\n{}.fi\n", text.lines().map(line).collect::<String>())
}
