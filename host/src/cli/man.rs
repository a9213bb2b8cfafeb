//! `jobq man`: the manual, made from the same text as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use super::exit::{Code, Failure};
use super::output;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq man | man -l -                              read the page of jobq
  jobq man --dir ~/.local/share/man/man1           one page for each command; then: man jobq-enqueue";

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

fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(dir.join(format!("{name}.1")), page(command)?)?;
    command.get_subcommands().try_for_each(|inner| write_all(inner, dir))
}

/// The page of one command. What `--help` says at its end keeps its lines.
fn page(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone());
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
    if let Some(end) = command.get_after_help() {
        page += &format!(".SH NOTES\n{}", verbatim(&end.to_string()));
    }
    Ok(page)
}

/// Text whose lines roff leaves as they are.
fn verbatim(text: &str) -> String {
    let line = |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-"));
    format!(".nf\n{}.fi\n", text.lines().map(line).collect::<String>())
}
