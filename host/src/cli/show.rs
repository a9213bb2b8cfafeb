//! `jobq show ID`: one job with its attempts.

use serde_json::Value;

use super::context::{Context, no_such_job};
use super::exit::Code;
use super::output::{self, cell};
use super::render::{self, Attempt};
use crate::queue::sqlite::OpenMode;
use crate::queue::{Id, Job, Store};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The id of the job
    #[arg(value_parser = Id::parse)]
    id: Id,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let (job, attempts) = context.block_on(async {
        let job = store.find(&args.id).await?.ok_or_else(|| no_such_job(&args.id))?;
        Ok((job, store.attempts(&args.id).await?))
    })?;
    let attempts: Vec<Attempt> = attempts.into_iter().map(Attempt::from).collect();
    let mut object = render::job(&job);
    object["attempts_log"] = serde_json::to_value(&attempts)?;
    output::one(context.format(), &object, || people(&job, &object, &attempts))?;
    Ok(Code::Ok)
}

fn people(job: &Job, object: &Value, attempts: &[Attempt]) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: &str| lines.push(format!("{name:<13} {value}"));
    for name in ["id", "type", "status", "priority", "attempts", "max_attempts", "timeout_ms", "scheduled_at"] {
        line(name, &plain(&object[name]));
    }
    for name in ["started_at", "completed_at", "created_at", "unique_key", "worker", "lease_until"] {
        if !object[name].is_null() {
            line(name, &plain(&object[name]));
        }
    }
    if let Some((percent, message)) = &job.progress {
        line("progress", &format!("{percent} % {}", cell(message, 80)));
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

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "as jobq.toml says for the type".to_owned(),
        Value::String(text) => cell(text, 200),
        other => other.to_string(),
    }
}
