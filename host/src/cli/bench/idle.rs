//! `jobq bench idle`: what a daemon takes from the machine while it has nothing to do.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::daemon_dir::{DaemonDir, SHIPPED, shipped};
use super::machine::Machine;
use super::process_usage::{ThreadUsage, megabytes};
use super::progress::Progress;
use super::workspace::WorkspaceArgs;
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output::{self, Column};
use crate::cli::parse::duration;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Starts a daemon with the default settings and three plugins in a process of its own, and watches
it when it has settled. A wake-up is a thread that had gone to sleep by itself.

Examples:
  jobq bench idle
  jobq bench idle --time 5s -o json";

/// After its start a daemon announces itself and settles down.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How long to watch
    #[arg(long, default_value = "30s", value_parser = duration)]
    time: Duration,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    /// Of one core.
    cpu_percent: f64,
    /// How often one of its threads was woken.
    wakeups_per_s: f64,
    /// The same by the names of its threads.
    by_thread: BTreeMap<String, Share>,
    rss_mb: f64,
    seconds: f64,
    settings: IdleSettings,
    machine: Machine,
}

/// What the threads of one name took.
#[derive(Debug, Serialize)]
struct Share {
    threads: usize,
    cpu_percent: f64,
    wakeups_per_s: f64,
}

impl Share {
    fn of(used: ThreadUsage, seconds: f64) -> Self {
        Self {
            threads: used.threads,
            cpu_percent: used.cpu.as_secs_f64() / seconds * 100.0,
            wakeups_per_s: used.wakeups as f64 / seconds,
        }
    }
}

#[derive(Debug, Serialize)]
struct IdleSettings {
    plugins: usize,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let report = args.workspace.run(async |workspace| measure(args.time, &workspace).await)?;
    output::one(context.format(), &report, || text(&report))?;
    Ok(Code::Ok)
}

async fn measure(time: Duration, workspace: &Path) -> anyhow::Result<Report> {
    let machine = Machine::detect(workspace);
    let daemon = DaemonDir::create(workspace, "daemon", &shipped()).await?.start_cached().await?;
    tokio::time::sleep(SETTLE).await;
    let mut progress = Progress::on_stderr();
    progress.show(&format!("watching an idle daemon for {time:?}"));
    let (before, started) = (daemon.usage()?, Instant::now());
    tokio::time::sleep(time).await;
    let (after, seconds) = (daemon.usage()?, started.elapsed().as_secs_f64());
    daemon.stop().await?;
    let used = after.since(&before);
    let mut all = ThreadUsage::default();
    used.values().for_each(|used| all += *used);
    let Share { cpu_percent, wakeups_per_s, .. } = Share::of(all, seconds);
    Ok(Report {
        cpu_percent,
        wakeups_per_s,
        by_thread: used.into_iter().map(|(name, used)| (name, Share::of(used, seconds))).collect(),
        rss_mb: megabytes(after.rss),
        seconds,
        settings: IdleSettings { plugins: SHIPPED },
        machine,
    })
}

fn text(report: &Report) -> String {
    let columns = [Column::Whole("THREADS"), Column::Whole("NUMBER"), Column::Whole("CPU"), Column::Whole("WAKE-UPS")];
    let row = |(name, share): (&String, &Share)| {
        let (cpu, wakeups) = (format!("{:.3} %", share.cpu_percent), format!("{:.1}/s", share.wakeups_per_s));
        [name.clone(), share.threads.to_string(), cpu, wakeups]
    };
    format!(
        "{}\n\n{:>8.3} % of a core\n{:>8.1} wake-ups/s\n{:>8.1} MB of memory\n\
         a daemon with {} plugins and no jobs, watched for {:.0} s\n{}",
        output::table(columns, report.by_thread.iter().map(row)),
        report.cpu_percent,
        report.wakeups_per_s,
        report.rss_mb,
        report.settings.plugins,
        report.seconds,
        report.machine.text(),
    )
}
