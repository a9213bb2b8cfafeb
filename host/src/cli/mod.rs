//! The commands, one file each. Data goes to stdout, talk to stderr; [`exit`] lists what the exit codes mean.

mod bench;
mod cancel;
mod check;
mod cleanup;
mod context;
mod demo;
mod enqueue;
pub mod exit;
mod list;
mod logs;
mod output;
mod plugin;
mod render;
mod retry;
mod run;
mod show;
mod status;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use context::{Context, Global};
use exit::Code;

/// Background jobs in SQLite, handled by WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "jobq", version, max_term_width = 100, after_help = exit::HELP)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: claim due jobs and run their handlers
    Run(run::Args),
    /// See it work: a daemon in a fresh directory, twenty jobs, and what became of them
    Demo(demo::Args),
    /// Add a job, or many
    Enqueue(enqueue::Args),
    /// Count the jobs in each state
    Status(status::Args),
    /// List jobs, newest first
    List(list::Args),
    /// Show one job with its attempts
    Show(show::Args),
    /// Show what the attempts of a job have logged
    Logs(logs::Args),
    /// Run failed, dead or cancelled jobs again, now
    Retry(retry::Args),
    /// Stop jobs that have not ended
    Cancel(cancel::Args),
    /// Delete finished jobs
    Cleanup(cleanup::Args),
    /// Look for problems in the settings and the plugins
    Check(check::Args),
    /// Look at plugins
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Measure what this machine does
    #[command(subcommand)]
    Bench(bench::Command),
}

/// Parses the command line, runs the command, and says how it ended.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            _ = error.print();
            let code = if error.use_stderr() { Code::Usage } else { Code::Ok };
            return code.into();
        }
    };
    let default_level = if matches!(cli.command, Command::Run(_)) { "jobq=info,warn" } else { "warn" };
    start_log(default_level);
    let context = Context::new(cli.global);
    match dispatch(cli.command, &context) {
        Ok(code) => code.into(),
        Err(error) => exit::report(&error).into(),
    }
}

fn dispatch(command: Command, context: &Context) -> anyhow::Result<Code> {
    match command {
        Command::Run(args) => run::run(&args, context),
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
    }
}

/// The log goes to stderr; `JOBQ_LOG` sets what of it, in the syntax of tracing's `EnvFilter`.
fn start_log(default_level: &str) {
    let filter = EnvFilter::try_from_env("JOBQ_LOG").unwrap_or_else(|_| EnvFilter::new(default_level));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour).init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
