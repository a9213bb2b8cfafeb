//! `jobq bench start`: how long a daemon takes from its start as a process until it is ready, and until all plugins serve.

use std::num::NonZeroUsize;
use std::path::Path;

use serde::Serialize;

use super::daemon_dir::{DaemonDir, Plugin, Started};
use super::machine::Machine;
use super::progress::Progress;
use super::statistics::median;
use super::workload::NOOP;
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output::{self, Column};
use crate::cli::parse::positive;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
A daemon is ready when it claims jobs; those whose plugin is still being compiled wait for it.
Cold means that nothing was compiled before. The plugins are copies of one that does nothing,
each with another content.

Examples:
  jobq bench start
  jobq bench start --plugins 3,100,1000 --runs 5 -o json";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many plugins
    #[arg(long, default_value = "3,100", value_delimiter = ',', value_parser = positive::<NonZeroUsize>)]
    plugins: Vec<NonZeroUsize>,
    /// How many starts of each kind; the figures are medians
    #[arg(long, default_value = "3", value_parser = positive::<NonZeroUsize>)]
    runs: NonZeroUsize,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    starts: Vec<Starts>,
    settings: StartSettings,
    machine: Machine,
}

/// Milliseconds from exec.
#[derive(Debug, Serialize)]
struct Starts {
    plugins: usize,
    cold_ready_ms: f64,
    cold_serving_ms: f64,
    cached_ready_ms: f64,
    cached_serving_ms: f64,
}

#[derive(Debug, Serialize)]
struct StartSettings {
    runs: usize,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let report = args.workspace.run(async |workspace| {
        let machine = Machine::detect(&workspace);
        let (mut starts, mut progress) = (Vec::new(), Progress::on_stderr());
        for plugins in &args.plugins {
            progress.show(&format!("{} starts with {plugins} plugins, cold and cached", args.runs));
            starts.push(measure(plugins.get(), args.runs.get(), &workspace).await?);
        }
        Ok(Report { starts, settings: StartSettings { runs: args.runs.get() }, machine })
    })?;
    output::one(context.format(), &report, || text(&report))?;
    Ok(Code::Ok)
}

async fn measure(plugins: usize, runs: usize, workspace: &Path) -> anyhow::Result<Starts> {
    let copies: Vec<Plugin> = (0..plugins).map(|number| (format!("noop{number}"), copy(number))).collect();
    let home = DaemonDir::create(workspace, &format!("daemon-{plugins}"), &copies).await?;
    let (mut cold, mut cached) = (Vec::new(), Vec::new());
    for run in 0..runs {
        if run > 0 {
            home.clear_cache()?;
        }
        cold.push(start(&home).await?);
        cached.push(start(&home).await?);
    }
    let of = |starts: &[Started], figure: fn(&Started) -> f64| median(starts.iter().map(figure));
    let ready = |started: &Started| started.ready.as_secs_f64() * 1e3;
    let serving = |started: &Started| started.serving.as_secs_f64() * 1e3;
    Ok(Starts {
        plugins,
        cold_ready_ms: of(&cold, ready),
        cold_serving_ms: of(&cold, serving),
        cached_ready_ms: of(&cached, ready),
        cached_serving_ms: of(&cached, serving),
    })
}

async fn start(home: &DaemonDir) -> anyhow::Result<Started> {
    let (daemon, started) = home.start().await?;
    daemon.stop().await?;
    Ok(started)
}

/// The component that does nothing, made different from its siblings by a custom section that holds `number`.
fn copy(number: usize) -> Vec<u8> {
    let name = b"copy";
    let content = (number as u64).to_le_bytes();
    let mut wasm = NOOP.to_vec();
    // Section 0, its size, then a name with its length: all below 128, so that each takes one byte.
    wasm.extend([0, (1 + name.len() + content.len()) as u8, name.len() as u8]);
    wasm.extend(name);
    wasm.extend(content);
    wasm
}

fn text(report: &Report) -> String {
    let columns = [
        Column::Whole("PLUGINS"),
        Column::Whole("COLD: READY"),
        Column::Whole("SERVING"),
        Column::Whole("CACHED: READY"),
        Column::Whole("SERVING"),
    ];
    let row = |starts: &Starts| {
        let ms = |ms: f64| format!("{ms:.0} ms");
        [
            starts.plugins.to_string(),
            ms(starts.cold_ready_ms),
            ms(starts.cold_serving_ms),
            ms(starts.cached_ready_ms),
            ms(starts.cached_serving_ms),
        ]
    };
    format!(
        "{}\n\nfrom exec until the daemon is ready, and until every plugin serves; medians of {}\n{}",
        output::table(columns, report.starts.iter().map(row)),
        report.settings.runs,
        report.machine.text(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_components_of_different_content() {
        let bytes = [copy(0), copy(99)];
        assert_ne!(bytes[0], bytes[1]);
        for wasm in bytes {
            wasmparser::Validator::new().validate_all(&wasm).unwrap();
        }
    }
}
