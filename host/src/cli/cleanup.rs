//! `jobq cleanup`: delete finished jobs now, instead of waiting for the daemon's retention.

use std::collections::BTreeSet;
use std::time::Duration;

use super::context::Context;
use super::exit::Code;
use super::output::talk;
use super::terminal::LiveLine;
use super::{many, output, parse};
use crate::queue::{OpenMode, Retention, Status, Store};

/// Jobs deleted in one transaction.
const BATCH: usize = 500;

/// The states that jobs end in.
const ENDED: &[Status] = &[Status::Completed, Status::Cancelled, Status::Dead];

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Without `--older-than` the retention of the settings holds, which the daemon keeps by itself.

Examples:
  jobq cleanup --older-than 7d --dry-run           how many jobs, and which
  jobq cleanup --older-than 7d
  jobq cleanup --older-than 30d --status dead";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Delete what has ended longer ago than this, such as 7d [default: the retention of the settings]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    older_than: Option<Duration>,
    /// Only jobs in this state; can be given more than once
    #[arg(long, ignore_case = true, value_parser = parse::status(ENDED))]
    status: Vec<Status>,
    /// Delete nothing: say how many jobs there are, and the ids of the first ones
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
    let store = context.open(&settings, OpenMode::Existing)?;
    let retention = args.retention(settings.worker.retention);
    if args.dry_run {
        let prunable = context.block_on(async { Ok(store.prunable(retention).await?) })?;
        return many::would("delete", &prunable, context);
    }
    let deleted = context.block_on(delete(&*store, retention))?;
    output::one(context.format(), &serde_json::json!({ "deleted": deleted }), || format!("deleted {deleted} jobs"))?;
    Ok(Code::Ok)
}

async fn delete(store: &dyn Store, retention: Retention) -> anyhow::Result<usize> {
    let mut line = LiveLine::on_stderr();
    let mut deleted = 0;
    let mut obstacles = BTreeSet::new();
    loop {
        let pruned = store.prune(retention, BATCH).await?;
        deleted += pruned.deleted;
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
        talk(format!("some old jobs are kept: {obstacle}"));
    }
    Ok(deleted)
}
