//! `jobq retry ID…`: run ended or waiting-to-retry jobs again, now.

use std::sync::Arc;

use super::context::{Context, no_such_job};
use super::exit::{Code, Failure};
use crate::queue::sqlite::OpenMode;
use crate::queue::{Id, Retried, Store};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The ids of the jobs
    #[arg(required = true, value_parser = Id::parse)]
    ids: Vec<Id>,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let policies = Arc::new(settings.worker.rules.policies());
    context.block_on(async {
        for id in &args.ids {
            match store.retry(id, policies.clone()).await? {
                Retried::From(status) => eprintln!("{id} was {status} and is pending now"),
                Retried::NotFound => return Err(no_such_job(id).into()),
                Retried::Forbidden(status) => {
                    let failure = Failure::new(Code::Conflict, format!("job {id} is {status} and cannot be retried"));
                    return Err(failure.hint("only failed, dead and cancelled jobs can be").into());
                }
                Retried::KeyTaken(holder) => {
                    let message = format!("the key of job {id} is held by unfinished job {holder}");
                    let hint = format!("wait for {holder} to end, or cancel it");
                    return Err(Failure::new(Code::Conflict, message).hint(hint).into());
                }
            }
        }
        Ok(Code::Ok)
    })
}
