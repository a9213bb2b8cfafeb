//! `jobq bench`: what this machine does, measured on the daemon's own path. No short cut that a real job does not take.
//!
//! A bench is a file with its arguments, its report and its measuring. What they share:
//! - `ground`: a directory that is gone afterwards, whatever happens; `machine`: what the figures were measured on.
//! - `subject`: the handler and its payload; `guests`: the sandbox with that handler loaded.
//! - `rig`: a fresh queue with the daemon's pool on it; `load`: clients that enqueue; `delivery`: each job done once?
//! - `disk`: fsyncs per second, the yardstick; `figures`: medians and percentiles.

mod delivery;
mod disk;
mod figures;
mod ground;
mod guests;
mod load;
mod machine;
mod rig;
mod subject;
mod throughput;

use super::context::Context;
use super::exit::Code;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Jobs per second from enqueue to completed, beside the two floors this is made of
    #[command(after_help = throughput::HELP)]
    Throughput(throughput::Args),
}

pub(super) fn run(command: Command, context: &Context) -> anyhow::Result<Code> {
    match command {
        Command::Throughput(args) => throughput::run(&args, context),
    }
}
