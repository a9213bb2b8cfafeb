//! `jobq logs ID`: what the attempts of a job have written.

use std::time::Duration;

use super::context::{Context, no_such_job};
use super::exit::Code;
use super::output;
use super::render;
use crate::queue::sqlite::OpenMode;
use crate::queue::{Id, Store};

/// How often `--follow` looks for new lines.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The id of the job
    #[arg(value_parser = Id::parse)]
    id: Id,
    /// Go on until the job has ended
    #[arg(short, long)]
    follow: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    context.block_on(async {
        let mut seen = 0;
        loop {
            let job = store.find(&args.id).await?.ok_or_else(|| no_such_job(&args.id))?;
            let lines = store.logs(&args.id, seen).await?;
            seen += lines.len();
            if !lines.is_empty() || !args.follow {
                let objects: Vec<_> = lines.iter().map(render::log_line).collect();
                let people = || lines.iter().map(render::log_text).collect::<Vec<_>>().join("\n");
                if !lines.is_empty() || context.format() == output::Format::Json {
                    output::many(context.format(), &objects, people)?;
                }
            }
            if !args.follow || job.status.is_terminal() {
                return Ok(Code::Ok);
            }
            tokio::time::sleep(LOOK).await;
        }
    })
}
