//! `jobq plugin`: create a plugin, try it without a daemon, inspect it, list what is being served.

mod attempt;
mod cases;
mod inspect;
mod list;
pub(super) mod needs;
mod new;
mod plugin_file;
mod run;
mod template;

use super::context::Context;
use super::exit::Code;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Create the directory of a new plugin, ready to build
    #[command(after_help = new::HELP)]
    New(new::Args),
    /// Run a plugin on one or many payloads, without a daemon and without a queue
    #[command(after_help = run::HELP)]
    Run(run::Args),
    /// Show what a plugin is, what it imports, and which imports its type is granted
    #[command(after_help = inspect::HELP)]
    Inspect(inspect::Args),
    /// List every type with its file and its state in each running daemon
    #[command(after_help = list::HELP)]
    List,
}

pub(super) fn run(command: &Command, context: &Context) -> anyhow::Result<Code> {
    match command {
        Command::New(args) => new::run(args, context),
        Command::Run(args) => run::run(args, context),
        Command::Inspect(args) => inspect::run(args, context),
        Command::List => list::run(context),
    }
}
