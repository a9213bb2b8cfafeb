//! `jobq status`: how many jobs there are in each state and of each type, and which daemons run.

use comfy_table::{Cell, Color};
use serde::Serialize;

use super::context::Context;
use super::exit::Code;
use super::output::{self, Column, cell};
use super::{daemons, list, render, terminal, when};
use crate::config::Settings;
use crate::queue::{Counts, Daemon, Overview, Status, Timestamp, TypeOverview, summary};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
The first line counts the jobs in each state. The types below are those with jobs that wait, run or are dead.
A job that a daemon has claimed and not started yet is pending.

Examples:
  jobq status
  jobq status | head -1
  jobq status -o json | jq .dead";

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    pending: u64,
    running: u64,
    completed: u64,
    failed: u64,
    dead: u64,
    cancelled: u64,
    types: Vec<TypeReport>,
    daemons: Vec<render::DaemonObject>,
}

/// The jobs of one type.
#[derive(Debug, Serialize)]
struct TypeReport {
    r#type: String,
    pending: u64,
    running: u64,
    failed: u64,
    dead: u64,
    oldest_due: Option<String>,
    /// Why its jobs do not run; `None` if they do or none is due.
    unserved: Option<String>,
}

pub(super) fn run(_: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open_to_read(&settings)?;
    let (overview, running) =
        context.block_on(async { Ok((store.overview().await?, daemons::running(&*store).await?)) })?;
    let report = report(&overview, &running, &settings);
    output::one(context.format(), &report, || people(&overview, &running, &report))?;
    Ok(Code::Ok)
}

fn report(overview: &Overview, running: &[Daemon], settings: &Settings) -> Report {
    let of_type = |found: &TypeOverview| TypeReport {
        r#type: found.job_type.clone(),
        pending: count(&found.counts, Status::Pending),
        running: count(&found.counts, Status::Running),
        failed: count(&found.counts, Status::Failed),
        dead: count(&found.counts, Status::Dead),
        oldest_due: found.oldest_due.map(|at| at.to_string()),
        unserved: found.oldest_due.and_then(|_| list::unserved(&found.job_type, running, settings)),
    };
    let counts = &overview.counts;
    Report {
        pending: count(counts, Status::Pending),
        running: count(counts, Status::Running),
        completed: count(counts, Status::Completed),
        failed: count(counts, Status::Failed),
        dead: count(counts, Status::Dead),
        cancelled: count(counts, Status::Cancelled),
        types: overview.types.iter().map(of_type).collect(),
        daemons: running.iter().map(render::DaemonObject::from).collect(),
    }
}

fn count(counts: &Counts, status: Status) -> u64 {
    counts.get(&status).copied().unwrap_or(0)
}

fn people(overview: &Overview, running: &[Daemon], report: &Report) -> String {
    let mut blocks = vec![summary(&overview.counts)];
    if !overview.types.is_empty() {
        blocks.push(String::new());
        blocks.push(types(&overview.types));
    }
    blocks.push(String::new());
    if running.is_empty() {
        blocks.push(daemons::describe(running));
    } else {
        blocks.push(daemon_table(running));
    }
    let unserved = report.types.iter().filter_map(|found| found.unserved.as_ref());
    blocks.extend(unserved.map(|reason| format!("note: {reason}")));
    blocks.join("\n")
}

fn types(types: &[TypeOverview]) -> String {
    let now = Timestamp::now();
    let columns = [
        Column::Cut("TYPE"),
        Column::Whole("PENDING"),
        Column::Whole("RUNNING"),
        Column::Whole("FAILED"),
        Column::Whole("DEAD"),
        Column::Whole("OLDEST DUE"),
    ];
    let row = |found: &TypeOverview| {
        let counted = |status| {
            let count = count(&found.counts, status);
            let colour = if count > 0 { terminal::of_status(status) } else { Color::Reset };
            Cell::new(count).fg(colour)
        };
        [
            Cell::new(cell(&found.job_type, 64)),
            counted(Status::Pending),
            counted(Status::Running),
            counted(Status::Failed),
            counted(Status::Dead),
            Cell::new(found.oldest_due.map_or_else(|| "-".to_owned(), |at| when::relative(at, now))),
        ]
    };
    output::table(columns, types.iter().map(row))
}

fn daemon_table(running: &[Daemon]) -> String {
    let now = Timestamp::now();
    let columns = [Column::Cut("DAEMON"), Column::Whole("STARTED"), Column::Whole("BUSY")];
    let row = |daemon: &Daemon| {
        [
            cell(&daemon.worker, 200),
            when::relative(daemon.started_at, now),
            format!("{} of {} slots", daemon.busy, daemon.slots),
        ]
    };
    output::table(columns, running.iter().map(row))
}
