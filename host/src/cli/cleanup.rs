//! `jobq cleanup`: delete finished jobs now, instead of waiting for the daemon's retention.

use std::time::Duration;

use super::context::Context;
use super::exit::Code;
use super::output;
use crate::queue::sqlite::OpenMode;
use crate::queue::{Retention, Store};

/// Jobs deleted in one transaction.
const BATCH: usize = 500;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Delete what has ended longer ago than this, such as 7d [default: the retention of the settings]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let retention = match args.older_than {
        Some(age) => Retention { completed: Some(age), cancelled: Some(age), dead: Some(age) },
        None => settings.worker.retention,
    };
    let deleted = context.block_on(async {
        let mut deleted = 0;
        loop {
            let pruned = store.prune(retention, BATCH).await?;
            deleted += pruned.deleted;
            if !pruned.more {
                return Ok(deleted);
            }
        }
    })?;
    output::one(context.format(), &serde_json::json!({ "deleted": deleted }), || format!("deleted {deleted} jobs"))?;
    Ok(Code::Ok)
}
