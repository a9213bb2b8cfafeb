//! `jobq bench`: what this machine does, measured on the daemon's own path. No short cut that a real job does not take.
//!
//! A bench is a file with its arguments, its report and its measuring. What they share:
//! - `ground`: a directory that is gone afterwards, whatever happens; `machine`: what the figures were measured on.
//! - `subject`: the handler and its payload; `guests`: the sandbox with that handler loaded.
//! - `rig`: a fresh queue with the daemon's pool on it; `load`: clients that enqueue; `delivery`: each job done once?
//! - `disk`: fsyncs per second, the yardstick; `figures`: medians and percentiles.

mod child;
mod client;
mod delivery;
mod disk;
mod figures;
mod ground;
mod guests;
mod latency;
mod load;
mod machine;
mod rig;
mod scale;
mod stopwatch;
mod subject;
mod throughput;
mod vitals;

use super::context::Context;
use super::exit::Code;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Jobs per second from enqueue to completed, beside the two floors this is made of
    #[command(after_help = throughput::HELP)]
    Throughput(throughput::Args),
    /// What one client gets done, one thing after the other, beside what its disk allows
    #[command(after_help = client::HELP)]
    Client(client::Args),
    /// From enqueue to the first instruction of the handler
    #[command(after_help = latency::HELP)]
    Latency(latency::Args),
    /// Throughput beside a million rows that should not matter
    #[command(after_help = scale::HELP)]
    Scale(scale::Args),
    /// The other process of `latency`
    #[command(hide = true)]
    Stranger(latency::StrangerArgs),
}

pub(super) fn run(command: Command, context: &Context) -> anyhow::Result<Code> {
    match command {
        Command::Throughput(args) => throughput::run(&args, context),
        Command::Client(args) => client::run(&args, context),
        Command::Latency(args) => latency::run(&args, context),
        Command::Scale(args) => scale::run(&args, context),
        Command::Stranger(args) => latency::run_stranger(&args, context),
    }
}
