//! `jobq delete`: delete jobs with their attempts and logs, whatever their age.

use std::sync::Arc;

use super::context::{Context, job_id, no_such_job};
use super::exit::{Code, Failure};
use super::many::{Batch, Verb, Which, each_id};
use crate::queue::{Id, OpenMode, Status, Store};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
A filter takes completed, dead and cancelled jobs, unless `--status` says otherwise. Running jobs
are never deleted: cancel them first. Attempts and logs of a job are deleted with it.

Examples:
  jobq delete 0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10
  jobq delete --type send_email --dry-run          how many finished jobs, and which
  jobq delete --type send_email --older-than 30d
  jobq delete --status pending --type send_email   before they run";

/// How it can be called.
pub(super) const USAGE: &str = "jobq delete <ID>...\n       jobq delete <--status STATUS|--type TYPE|--older-than DURATION|--before TIME|--all> [--limit N] [--dry-run]";

/// The states of jobs that can be deleted.
pub(super) const FROM: &[Status] =
    &[Status::Pending, Status::Failed, Status::Completed, Status::Dead, Status::Cancelled];

const VERB: Verb = Verb {
    name: "delete",
    done: "deleted",
    default: &[Status::Completed, Status::Dead, Status::Cancelled],
    takes_keys: false,
    keeps_referenced: true,
};

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
            return each_id(&which.ids, "deleted", context.format(), |id| one(store.clone(), id)).await;
        };
        let selected = store.select(selection.clone()).await?;
        let step = async |jobs| Ok(Batch::from(store.delete_many(jobs, selection.states.clone()).await?));
        which.each(&VERB, selected, &settings, context, step).await
    })
}

async fn one(store: Arc<dyn Store>, typed: Id) -> anyhow::Result<Status> {
    let id = job_id(&*store, &typed).await?;
    let job = store.find(&id).await?.ok_or_else(|| no_such_job(&id))?;
    let deleted = store.delete_many(vec![job.reference], FROM.to_vec()).await?;
    if deleted.deleted == 1 {
        return Ok(job.status);
    }
    if let Some(obstacle) = deleted.obstacles.into_iter().next() {
        return Err(Failure::new(Code::Conflict, format!("job {id} cannot be deleted: {obstacle}")).into());
    }
    // It was running, or another process deleted it meanwhile.
    store.find(&id).await?.ok_or_else(|| no_such_job(&id))?;
    let failure = Failure::new(Code::Conflict, format!("job {id} is running and cannot be deleted"));
    Err(failure.hint(format!("cancel it first: `jobq cancel {id}`")).into())
}
