//! `jobq cancel ID…`: stop jobs that have not ended.

use super::context::{Context, no_such_job};
use super::exit::{Code, Failure};
use crate::queue::sqlite::OpenMode;
use crate::queue::{Cancelled, Id, Store};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The ids of the jobs
    #[arg(required = true, value_parser = Id::parse)]
    ids: Vec<Id>,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    context.block_on(async {
        for id in &args.ids {
            match store.cancel(id).await? {
                Cancelled::From(status) => eprintln!("{id} was {status} and is cancelled now"),
                Cancelled::NotFound => return Err(no_such_job(id).into()),
                Cancelled::Forbidden(status) => {
                    let failure = Failure::new(Code::Conflict, format!("job {id} is {status} and cannot be cancelled"));
                    return Err(failure.hint("only pending, running and failed jobs can be").into());
                }
            }
        }
        Ok(Code::Ok)
    })
}
