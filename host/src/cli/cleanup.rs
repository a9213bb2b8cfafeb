//! `jobq cleanup`: deletes old finished jobs now, instead of waiting for the daemon.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::exit::{Code, Failure};
use super::output::talk;
use super::terminal::LiveLine;
use super::{many, output, parse};
use crate::queue::{OpenMode, Retention, Status, Store, StoreError};

/// The most jobs deleted in one transaction.
const BATCH: usize = 500;

/// A batch that finds the disk full is tried again with this fraction of its jobs: a smaller one needs less write-ahead log.
const SHRINK: usize = 10;

/// The states that jobs end in.
const ENDED: &[Status] = &[Status::Completed, Status::Cancelled, Status::Dead];

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Without `--older-than`, the retention of the settings applies, as in the daemon.
On a nearly full disk it deletes in smaller steps; 100 KiB of free space are enough.

Examples:
  jobq cleanup --older-than 7d --dry-run           how many jobs, and which
  jobq cleanup --older-than 7d
  jobq cleanup --older-than 30d --status dead";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Delete jobs that ended longer ago than this, such as 7d [default: the retention of the settings]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    older_than: Option<Duration>,
    /// Only jobs in this state; can be given more than once
    #[arg(long, ignore_case = true, value_parser = parse::status(ENDED))]
    status: Vec<Status>,
    /// Delete nothing; print how many jobs there are, and the ids of the first ones
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    fn retention(&self, settings: Retention) -> Retention {
        let age = |status: Status, kept: Option<Duration>| {
            let asked = self.status.is_empty() || self.status.contains(&status);
            if asked { self.older_than.or(kept) } else { None }
        };
        Retention {
            completed: age(Status::Completed, settings.completed),
            cancelled: age(Status::Cancelled, settings.cancelled),
            dead: age(Status::Dead, settings.dead),
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let retention = args.retention(settings.worker.retention);
    let open = || context.open(&settings, OpenMode::Existing);
    if args.dry_run {
        let store = open()?;
        let prunable = context.block_on(async { Ok(store.prunable(retention).await?) })?;
        return many::would("delete", &prunable, context);
    }
    let deleted = context.block_on(delete(open, retention))?;
    output::one(context.format(), &serde_json::json!({ "deleted": deleted }), || format!("deleted {deleted} jobs"))?;
    Ok(Code::Ok)
}

async fn delete(open: impl Fn() -> anyhow::Result<Arc<dyn Store>>, retention: Retention) -> anyhow::Result<usize> {
    let mut store = open()?;
    let mut line = LiveLine::on_stderr();
    let (mut deleted, mut obstacles) = (0, BTreeSet::new());
    let (mut batch, mut since_open) = (BATCH, 0);
    loop {
        let pruned = match store.prune(retention, batch).await {
            // Closing the store writes the write-ahead log back, so that it can be filled again from its beginning.
            Err(StoreError::Full(_)) if since_open > 0 => {
                store.close().await;
                store = open()?;
                since_open = 0;
                continue;
            }
            Err(StoreError::Full(_)) if batch > 1 => {
                batch = (batch / SHRINK).max(1);
                continue;
            }
            Err(error @ StoreError::Full(_)) => {
                let message = format!("{error}; deleted {deleted} jobs before this");
                let hint = "a deletion needs room for the write-ahead log: make some 100 KiB of room on the disk first";
                return Err(Failure::new(Code::Unexpected, message).hint(hint).into());
            }
            Err(error) => return Err(anyhow::Error::new(error).context(format!("deleted {deleted} jobs before this"))),
            Ok(pruned) => pruned,
        };
        deleted += pruned.deleted;
        since_open += pruned.deleted;
        obstacles.extend(pruned.obstacles);
        if !pruned.more {
            break;
        }
        if let Some(line) = &mut line {
            line.draw(&format!("deleted {deleted} jobs"));
        }
    }
    drop(line);
    for obstacle in obstacles {
        talk(format!("some old jobs were kept: {obstacle}"));
    }
    Ok(deleted)
}
