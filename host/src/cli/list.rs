//! `jobq list`: jobs, newest first.

use comfy_table::Cell;

use super::context::{Context, known_types};
use super::exit::Code;
use super::output::{self, Column, cell, talk};
use super::{parse, render, terminal, when};
use crate::config::{Settings, suggest};
use crate::queue::{Filter, Job, OpenMode, Status, Timestamp};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq list --status dead                  what has failed for good, and why
  jobq list --type send_email --limit 5
  jobq list -o ndjson | jq -r .id          one JSON object a line, exact instants";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only jobs in this state
    #[arg(long, ignore_case = true, value_parser = parse::status(&Status::ALL))]
    status: Option<Status>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// The most to list
    #[arg(long, value_name = "N", value_parser = parse::count, default_value_t = 50)]
    limit: usize,
}

pub(super) fn run(args: Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let filter = Filter { status: args.status, job_type: args.job_type.clone(), limit: args.limit };
    let jobs = context.block_on(async { Ok(store.list(filter).await?) })?;
    if jobs.is_empty() {
        match args.job_type.as_deref().and_then(|typed| unknown_type(typed, &settings)) {
            Some(hint) => talk(hint),
            None if args.status.is_some() || args.job_type.is_some() => talk("no job matches"),
            None => talk("there are no jobs"),
        }
    }
    let objects: Vec<_> = jobs.iter().map(render::job).collect();
    if !jobs.is_empty() || context.format() == output::Format::Json {
        output::many(context.format(), &objects, || people(&jobs, &settings))?;
    }
    Ok(Code::Ok)
}

/// What to say about a type that neither the settings nor the plugins know.
pub(super) fn unknown_type(typed: &str, settings: &Settings) -> Option<String> {
    let known = known_types(settings);
    if known.iter().any(|name| name == typed) {
        return None;
    }
    let near = suggest::closest(typed, known.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Some(format!("no job has the type `{}`, and nothing serves it{near}", cell(typed, 64)))
}

fn people(jobs: &[Job], settings: &Settings) -> String {
    let now = Timestamp::now();
    let columns = [
        Column::Whole("ID"),
        Column::Cut("TYPE"),
        Column::Whole("STATUS"),
        Column::Whole("WHEN"),
        Column::Spare("ATTEMPTS"),
        Column::Spare("PRIO"),
        Column::Spare("NOTE"),
    ];
    let row = |job: &Job| {
        [
            Cell::new(cell(job.id.as_str(), 255)),
            Cell::new(cell(&job.job_type, 64)),
            Cell::new(job.status).fg(terminal::of_status(job.status)),
            Cell::new(when::of_job(job, now)),
            Cell::new(attempts(job, settings)),
            Cell::new(job.priority),
            Cell::new(note(job)),
        ]
    };
    output::table(columns, jobs.iter().map(row))
}

/// Attempts that counted, of those that there are at most.
pub(super) fn attempts(job: &Job, settings: &Settings) -> String {
    let most = job.max_attempts.unwrap_or(settings.worker.job_types.of(&job.job_type).policy.max_attempts);
    format!("{}/{most}", job.attempts)
}

/// What is worth saying in the state the job is in: how far it is, or what went wrong.
fn note(job: &Job) -> String {
    match (job.status, &job.progress, &job.error) {
        (Status::Running, Some((percent, message)), _) => cell(format!("{percent}% {message}").trim_end(), 60),
        (Status::Pending | Status::Failed | Status::Dead, _, Some(error)) => cell(error, 60),
        _ => String::new(),
    }
}
