//! `jobq completions SHELL`: what a shell needs to complete the command line.

use clap_complete::Shell;

use super::exit::Code;
use super::output;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq completions bash > ~/.local/share/bash-completion/completions/jobq
  jobq completions zsh > ~/.zfunc/_jobq            with ~/.zfunc in your fpath
  jobq completions fish > ~/.config/fish/completions/jobq.fish";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &Args, mut command: clap::Command) -> anyhow::Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "jobq", &mut script);
    output::print(String::from_utf8(script)?.trim_end_matches('\n'))?;
    Ok(Code::Ok)
}
