//! `jobq man`: the manual, made from the same text as `--help`.

use std::path::PathBuf;

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

pub(super) fn run(args: &Args, command: clap::Command) -> anyhow::Result<Code> {
    // The pages name who is subject to them, not what stands in every one of them.
    let command = command.disable_help_subcommand(true);
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        output::print(String::from_utf8(page)?.trim_end_matches('\n'))?;
        return Ok(Code::Ok);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .map_err(|error| Failure::usage(format!("cannot write the pages into `{}`: {error}", dir.display())))?;
    output::talk(format!("the pages are in {}", dir.display()));
    Ok(Code::Ok)
}
