//! `jobq cancel`: stop unfinished jobs.

use std::sync::Arc;

use super::context::{Context, job_id, no_such_job};
use super::exit::{Code, Failure};
use super::many::{Batch, Verb, Which, each_id};
use crate::queue::{Cancelled, Id, OpenMode, Status, Store};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
A filter takes pending, running and failed jobs, unless `--status` says otherwise.
A running handler sees the cancellation within a second, and is stopped 5 s later.

Examples:
  jobq cancel 0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10
  jobq cancel --type send_email --dry-run          how many jobs, and which
  jobq cancel --status pending --type send_email   leave those that run
  jobq cancel --status failed --older-than 1d";

/// How it can be called.
pub(super) const USAGE: &str = "jobq cancel <ID>...\n       jobq cancel <--status STATUS|--type TYPE|--older-than DURATION|--before TIME|--all> [--limit N] [--dry-run]";

/// The states of jobs that can be cancelled.
pub(super) const FROM: &[Status] = &[Status::Pending, Status::Running, Status::Failed];

const VERB: Verb =
    Verb { name: "cancel", done: "cancelled", default: FROM, takes_keys: false, keeps_referenced: false };

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let which = &args.which;
    let selection = if which.ids.is_empty() { Some(which.selection(&VERB)?) } else { None };
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    context.block_on(async {
        let Some(selection) = selection else {
            return each_id(&which.ids, "cancelled", context.format(), |id| one(store.clone(), id)).await;
        };
        let selected = store.select(selection.clone()).await?;
        let step = async |jobs| Ok(Batch::from(store.cancel_many(jobs, selection.states.clone()).await?));
        which.each(&VERB, selected, &settings, context, step).await
    })
}

async fn one(store: Arc<dyn Store>, typed: Id) -> anyhow::Result<Status> {
    let id = job_id(&*store, &typed).await?;
    match store.cancel(&id).await? {
        Cancelled::From(status) => Ok(status),
        Cancelled::NotFound => Err(no_such_job(&id).into()),
        Cancelled::Forbidden(Status::Cancelled) => {
            Err(Failure::new(Code::Conflict, format!("job {id} is cancelled and cannot be cancelled again")).into())
        }
        Cancelled::Forbidden(status) => {
            let failure = Failure::new(Code::Conflict, format!("job {id} is {status} and cannot be cancelled"));
            Err(failure.hint("only pending, running and failed jobs can be").into())
        }
    }
}
