//! `jobq plugin`: make one, try it without a daemon, look into it, see what serves.

mod attempt;
mod cases;
mod inspect;
mod list;
pub(super) mod needs;
mod new;
mod run;
mod subject;
mod template;

use super::context::Context;
use super::exit::Code;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Make the directory of a new plugin that builds at once
    #[command(after_help = new::HELP)]
    New(new::Args),
    /// Run one attempt of a plugin, or many, without a daemon and without a queue
    #[command(after_help = run::HELP)]
    Run(run::Args),
    /// Show what a plugin is, what it imports, and what of that its type is granted
    #[command(after_help = inspect::HELP)]
    Inspect(inspect::Args),
    /// Every type with its file and how that stands in each running daemon
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
