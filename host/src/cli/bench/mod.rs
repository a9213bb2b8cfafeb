//! `jobq bench`: measures this machine through the daemon's own code path. A benchmark job takes no shortcut.
//!
//! Each benchmark is one file with its arguments, report and measurement. They share:
//! - `workspace`: a temporary directory, deleted afterwards; `machine`: what the figures were measured on.
//! - `workload`: the handler and its payload; `guests`: the sandbox with that handler loaded.
//! - `pool`: a fresh queue with the daemon's pool; `load`: clients that enqueue; `delivery`: was each job done exactly once?
//! - `child_process`, `daemon_dir`: a daemon in a process and directory of its own; `process_usage`: CPU, wake-ups, memory.
//! - `instrumented`: when a handler's first instruction ran, and how many guests run at once.
//! - `disk`: fsyncs per second; `statistics`: medians and percentiles; `progress`: what is being measured now.

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
    /// Jobs per second from enqueue to completed, and of the store and the sandbox alone
    #[command(after_help = throughput::HELP)]
    Throughput(throughput::Args),
    /// Jobs per second of one sequential client, compared with what the disk allows
    #[command(after_help = client::HELP)]
    Client(client::Args),
    /// From enqueue to the first instruction of the handler
    #[command(after_help = latency::HELP)]
    Latency(latency::Args),
    /// Throughput with a million unrelated rows in the table
    #[command(after_help = scale::HELP)]
    Scale(scale::Args),
    /// CPU time and wake-ups of an idle daemon
    #[command(after_help = idle::HELP)]
    Idle(idle::Args),
    /// Time from the start of a daemon until it is ready
    #[command(after_help = start::HELP)]
    Start(start::Args),
    /// Memory of a daemon, idle and at full load
    #[command(after_help = memory::HELP)]
    Memory(memory::Args),
    /// Ten thousand attempts that run at once
    #[command(after_help = held::HELP)]
    Held(held::Args),
    /// Throughput of one type, and timer delays, while another type loops in half of the slots
    #[command(after_help = fairness::HELP)]
    Fairness(fairness::Args),
    /// Slot use of one type, beside an idle type with short jobs
    #[command(after_help = types::HELP)]
    Types(types::Args),
    /// The other process of `latency`, which enqueues by plain SQL
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
