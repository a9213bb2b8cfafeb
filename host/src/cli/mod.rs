//! The commands, one file each. Data goes to stdout, talk to stderr; [`exit`] lists what the exit codes mean.

mod bench;
mod cancel;
mod check;
mod cleanup;
mod completions;
mod context;
mod demo;
mod enqueue;
pub mod exit;
mod input;
mod list;
mod log;
mod logs;
mod man;
mod many;
mod output;
mod parse;
mod plugin;
mod render;
mod retry;
mod run;
mod server;
mod shipped;
mod show;
mod status;
mod terminal;
mod wait;
mod when;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use context::{Context, Global};
use exit::Code;
/// Background jobs in SQLite, handled by WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "jobq", version, max_term_width = 100, after_help = format!("{HELP}\n\n{}", exit::HELP))]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Examples for `--help`.
const HELP: &str = "\
Examples:
  jobq run                                         the daemon, on ./jobq.toml
  jobq enqueue process_csv @request.json --wait=30s
  jobq list --status dead                          what failed for good
  jobq retry --type process_csv                    and again";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: claim due jobs and run their handlers
    #[command(after_help = run::HELP)]
    Run(run::Args),
    /// See it work: a daemon in a fresh directory, twenty jobs, and what became of them
    #[command(after_help = demo::HELP)]
    Demo(demo::Args),
    /// Add a job, or many
    #[command(after_help = enqueue::HELP)]
    Enqueue(enqueue::Args),
    /// Count the jobs in each state
    #[command(after_help = status::HELP)]
    Status(status::Args),
    /// List jobs, newest first
    #[command(after_help = list::HELP)]
    List(list::Args),
    /// Show one job with its attempts
    #[command(after_help = show::HELP)]
    Show(show::Args),
    /// Show what the attempts of a job have logged
    #[command(after_help = logs::HELP)]
    Logs(logs::Args),
    /// Run failed, dead or cancelled jobs again, now
    #[command(after_help = retry::HELP, override_usage = retry::USAGE, mut_arg("status", |arg| many::states(arg, retry::FROM)))]
    Retry(retry::Args),
    /// Stop jobs that have not ended
    #[command(after_help = cancel::HELP, override_usage = cancel::USAGE, mut_arg("status", |arg| many::states(arg, cancel::FROM)))]
    Cancel(cancel::Args),
    /// Delete finished jobs
    #[command(after_help = cleanup::HELP)]
    Cleanup(cleanup::Args),
    /// Look for problems in the settings and the plugins
    #[command(after_help = check::HELP)]
    Check(check::Args),
    /// Make, try, look at plugins
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Measure what this machine does
    #[command(subcommand)]
    Bench(bench::Command),
    /// Print the completions for a shell
    #[command(after_help = completions::HELP)]
    Completions(completions::Args),
    /// Print the manual page, or write one for each command
    #[command(after_help = man::HELP)]
    Man(man::Args),
}

/// The definition of the command line, for the tests of the documentation.
#[doc(hidden)]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line, runs the command, and says how it ended.
pub fn main() -> ExitCode {
    // Reading the command line takes milliseconds, and a signal that nobody listens to yet ends the process.
    let is_daemon = std::env::args_os().nth(1).is_some_and(|first| first == "run");
    let early = is_daemon.then(run::Listening::start);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            _ = error.print();
            let code = if error.use_stderr() { Code::Usage } else { Code::Ok };
            return code.into();
        }
    };
    match cli.command {
        Command::Run(_) => log::start_for_daemon(),
        _ => log::start(),
    }
    let context = Context::new(cli.global);
    let code = dispatch(cli.command, &context, early).unwrap_or_else(|error| exit::report(&error));
    log::finish();
    code.into()
}

fn dispatch(
    command: Command,
    context: &Context,
    early: Option<anyhow::Result<run::Listening>>,
) -> anyhow::Result<Code> {
    match command {
        Command::Run(_) => run::run(early.unwrap_or_else(run::Listening::start)?, context),
        Command::Demo(args) => demo::run(&args, context),
        Command::Enqueue(args) => enqueue::run(args, context),
        Command::Status(args) => status::run(&args, context),
        Command::List(args) => list::run(args, context),
        Command::Show(args) => show::run(&args, context),
        Command::Logs(args) => logs::run(&args, context),
        Command::Retry(args) => retry::run(&args, context),
        Command::Cancel(args) => cancel::run(&args, context),
        Command::Cleanup(args) => cleanup::run(&args, context),
        Command::Check(args) => check::run(&args, context),
        Command::Plugin(command) => plugin::run(&command, context),
        Command::Bench(command) => bench::run(command, context),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
