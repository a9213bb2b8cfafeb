//! `jobq bench`: what this machine does, measured on the daemon's own path. No short cut that a real job does not take.
//!
//! A bench is a file with its arguments, its report and its measuring. What they share:
//! - `workspace`: a directory that is gone afterwards, whatever happens; `machine`: what the figures were measured on.
//! - `workload`: the handler and its payload; `guests`: the sandbox with that handler loaded.
//! - `bench_pool`: a fresh queue with the daemon's pool on it; `load`: clients that enqueue; `delivery`: each job done once?
//! - `child`, `daemon`: another process, such as a daemon in a directory of its own; `usage`: what a process uses.
//! - `instrumented`: when a handler's first instruction ran, and how many run at once.
//! - `disk`: fsyncs per second, the yardstick; `figures`: medians and percentiles; `progress`: what is being measured.

mod child_process;
mod client;
mod daemon_dir;
mod delivery;
mod disk;
mod fairness;
mod guests;
mod held;
mod idle;
mod instrumented;
mod latency;
mod load;
mod machine;
mod memory;
mod pool;
mod process_usage;
mod progress;
mod scale;
mod start;
mod statistics;
mod throughput;
mod types;
mod workload;
mod workspace;

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
    /// Cores and wake-ups that a daemon without work takes
    #[command(after_help = idle::HELP)]
    Idle(idle::Args),
    /// How long a daemon takes until it is ready
    #[command(after_help = start::HELP)]
    Start(start::Args),
    /// Memory of a daemon, idle and at full load
    #[command(after_help = memory::HELP)]
    Memory(memory::Args),
    /// Ten thousand attempts that hold a lease at once
    #[command(after_help = held::HELP)]
    Held(held::Args),
    /// One type's throughput and the timers, beside another type that loops in half of the slots
    #[command(after_help = fairness::HELP)]
    Fairness(fairness::Args),
    /// One type's slots, beside another type that was quick and is idle
    #[command(after_help = types::HELP)]
    Types(types::Args),
    /// The other process of `latency`
    #[command(hide = true)]
    ForeignWriter(latency::ForeignWriterArgs),
}

pub(super) fn run(command: Command, context: &Context) -> anyhow::Result<Code> {
    match command {
        Command::Throughput(args) => throughput::run(&args, context),
        Command::Client(args) => client::run(&args, context),
        Command::Latency(args) => latency::run(&args, context),
        Command::Scale(args) => scale::run(&args, context),
        Command::Idle(args) => idle::run(&args, context),
        Command::Start(args) => start::run(&args, context),
        Command::Memory(args) => memory::run(&args, context),
        Command::Held(args) => held::run(&args, context),
        Command::Fairness(args) => fairness::run(&args, context),
        Command::Types(args) => types::run(&args, context),
        Command::ForeignWriter(args) => latency::run_foreign_writer(&args, context),
    }
}
