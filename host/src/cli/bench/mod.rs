//! `jobq bench`: what this machine does, measured on the daemon's own path. No short cut that a real job does not take.

mod disk;
mod throughput;

use super::context::Context;
use super::exit::Code;

/// Examples for `--help`.
const HELP: &str = "\
Examples:
  jobq bench throughput
  jobq bench throughput --jobs 10000 --dir /var/lib/jobq -o json";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Jobs per second from enqueue to completed, with a handler that does nothing
    #[command(after_help = HELP)]
    Throughput(throughput::Args),
}

pub(super) fn run(command: Command, context: &Context) -> anyhow::Result<Code> {
    match command {
        Command::Throughput(args) => throughput::run(&args, context),
    }
}
