//! `jobq retry`: run failed, dead or cancelled jobs again, now.

use std::sync::Arc;

use super::context::{Context, job_id, no_such_job};
use super::exit::{Code, Failure};
use super::many::{Batch, Verb, Which, each_id};
use crate::queue::{Id, OpenMode, Retried, RetryPolicies, Status, Store};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
A filter takes dead jobs, unless `--status` says otherwise.

Examples:
  jobq retry 0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10
  jobq retry --type send_email --dry-run           how many dead jobs, and which
  jobq retry --type send_email --older-than 1h --limit 100
  jobq retry --status failed                       waiting jobs, now instead of after their backoff
  jobq retry --all                                 every dead job";

/// How it can be called.
pub(super) const USAGE: &str = "jobq retry <ID>...\n       jobq retry <--status STATUS|--type TYPE|--older-than DURATION|--before TIME|--all> [--limit N] [--dry-run]";

/// The states of jobs that can be retried.
pub(super) const FROM: &[Status] = &[Status::Failed, Status::Dead, Status::Cancelled];

const VERB: Verb =
    Verb { name: "retry", done: "retried", default: &[Status::Dead], takes_keys: true, keeps_referenced: false };

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
    let policies = Arc::new(settings.worker.job_types.policies());
    context.block_on(async {
        let Some(selection) = selection else {
            let one = |id| one(store.clone(), id, policies.clone());
            return each_id(&which.ids, "pending", context.format(), one).await;
        };
        let selected = store.select(selection.clone()).await?;
        let step =
            async |jobs| Ok(Batch::from(store.retry_many(jobs, selection.states.clone(), policies.clone()).await?));
        which.each(&VERB, selected, &settings, context, step).await
    })
}

async fn one(store: Arc<dyn Store>, typed: Id, policies: Arc<RetryPolicies>) -> anyhow::Result<Status> {
    let id = job_id(&*store, &typed).await?;
    match store.retry(&id, policies).await? {
        Retried::From(status) => Ok(status),
        Retried::NotFound => Err(no_such_job(&id).into()),
        Retried::Forbidden(status) => {
            let failure = Failure::new(Code::Conflict, format!("job {id} is {status} and cannot be retried"));
            Err(failure.hint("only failed, dead and cancelled jobs can be").into())
        }
        Retried::KeyTaken(holder) => {
            let message = format!("the key of job {id} is held by unfinished job {holder}");
            let hint = format!("wait for {holder} to end, or cancel it");
            Err(Failure::new(Code::Conflict, message).hint(hint).into())
        }
    }
}
