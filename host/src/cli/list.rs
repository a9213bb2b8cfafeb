//! `jobq list`: jobs, newest first.

use super::context::Context;
use super::exit::{Code, Failure};
use super::output::{self, cell};
use super::render;
use crate::config::suggest;
use crate::queue::sqlite::OpenMode;
use crate::queue::{Filter, Job, Status, Store};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only jobs in this state: pending, running, completed, failed, dead or cancelled
    #[arg(long, value_parser = status)]
    status: Option<Status>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// The most to list
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

fn status(word: &str) -> Result<Status, Failure> {
    Status::parse(word).ok_or_else(|| {
        let words = Status::ALL.map(Status::as_str);
        let near = suggest::closest(word, words).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Failure::usage(format!("expected one of {}{near}", words.join(", ")))
    })
}

pub(super) fn run(args: Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let filter = Filter { status: args.status, job_type: args.job_type, limit: args.limit };
    let jobs = context.block_on(async { Ok(store.list(filter).await?) })?;
    let objects: Vec<_> = jobs.iter().map(render::job).collect();
    output::many(context.format(), &objects, || people(&jobs))?;
    Ok(Code::Ok)
}

fn people(jobs: &[Job]) -> String {
    let header = ["ID", "TYPE", "STATUS", "PRIORITY", "ATTEMPTS", "SCHEDULED", "ERROR"];
    let row = |job: &Job| {
        [
            cell(job.id.as_str(), 40),
            cell(&job.job_type, 24),
            job.status.to_string(),
            job.priority.to_string(),
            job.attempts.to_string(),
            job.scheduled_at.to_string(),
            cell(job.error.as_deref().unwrap_or(""), 40),
        ]
    };
    output::table(header, jobs.iter().map(row))
}
