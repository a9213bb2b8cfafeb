//! `jobq show ID`: one job with its attempts.

use super::context::{Context, job_id, no_such_job};
use super::exit::Code;
use super::output::{self, cell};
use super::render::{self, Attempt};
use super::{list, terminal, when};
use crate::config::Settings;
use crate::queue::{Id, Job, OpenMode, Status, Timestamp};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq show 0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10
  jobq show ID -o json | jq -r .result     the result alone, byte for byte
  jobq show ID -o json | jq .attempts_log";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The id of the job, or its beginning where no other id has the same
    #[arg(value_parser = Id::parse)]
    id: Id,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let (job, attempts) = context.block_on(async {
        let id = job_id(&*store, &args.id).await?;
        Ok(store.history(&id).await?.ok_or_else(|| no_such_job(&id))?)
    })?;
    let attempts: Vec<Attempt> = attempts.into_iter().map(Attempt::from).collect();
    let mut object = render::job(&job);
    object["attempts_log"] = serde_json::to_value(&attempts)?;
    output::one(context.format(), &object, || people(&job, &settings, &attempts))?;
    Ok(Code::Ok)
}

fn people(job: &Job, settings: &Settings, attempts: &[Attempt]) -> String {
    let now = Timestamp::now();
    let mut lines = Vec::new();
    let mut line = |name: &str, value: &str| lines.push(format!("{name:<13} {value}"));
    line("id", &cell(job.id.as_str(), 255));
    line("type", &cell(&job.job_type, 200));
    line("status", &terminal::paint(job.status.as_str(), job.status));
    if let Some((percent, message)) = job.progress.as_ref().filter(|_| job.status == Status::Running) {
        line("progress", &bar(*percent, message));
    }
    line("attempts", &list::attempts(job, settings));
    line("priority", &job.priority.to_string());
    line("timeout", &timeout(job, settings));
    for (name, at) in [
        ("created_at", Some(job.created_at)),
        ("scheduled_at", Some(job.scheduled_at)),
        ("started_at", job.started_at),
        ("completed_at", job.completed_at),
        ("lease_until", job.lease_until),
    ] {
        if let Some(at) = at {
            line(name, &when::both(at, now));
        }
    }
    for (name, text) in [("unique_key", &job.key), ("worker", &job.worker)] {
        if let Some(text) = text {
            line(name, &cell(text, 200));
        }
    }
    line("payload", &cell(&job.payload, 400));
    if let Some(result) = &job.result {
        line("result", &cell(result, 400));
    }
    if let Some(error) = &job.error {
        line("error", &render::paragraph(error).replace('\n', &format!("\n{:14}", "")));
    }
    if !attempts.is_empty() {
        lines.push(format!("\n{}", render::attempts(attempts)));
    }
    lines.join("\n")
}

/// `[######..............] 30% half of the file`
fn bar(percent: u8, message: &str) -> String {
    let done = usize::from(percent.min(100)) / 5;
    let bar = format!("[{}{}] {percent}% {}", "#".repeat(done), ".".repeat(20 - done), cell(message, 80));
    bar.trim_end().to_owned()
}

fn timeout(job: &Job, settings: &Settings) -> String {
    match job.timeout {
        Some(own) => format!("{} (its own)", humantime::format_duration(own)),
        None => humantime::format_duration(settings.worker.job_types.of(&job.job_type).limits.timeout).to_string(),
    }
}
