//! `retry`, `cancel` and `delete` take ids, or a filter that names many jobs. Many jobs are changed in batches, each a transaction.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use super::context::Context;
use super::exit::{Code, Failure, code_of, report};
use super::list::unknown_type;
use super::output::{self, Format, talk};
use super::parse;
use super::terminal::LiveLine;
use crate::config::Settings;
use crate::queue::{BulkResult, Deleted, Id, JobRef, Selected, Selection, Status, StoreError, Timestamp};

/// Jobs in one transaction: a few milliseconds, so that other writers don't wait long.
const BATCH: usize = 500;

/// A batch that finds the disk full is tried again with this fraction of its jobs.
const SHRINK: usize = 10;

/// The flags that say which jobs.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The ids of the jobs, or their beginnings where no other id has the same
    #[arg(value_name = "ID", value_parser = Id::parse)]
    pub(super) ids: Vec<Id>,
    /// Jobs in this state; can be given more than once
    #[arg(long, ignore_case = true, value_parser = parse::status(&Status::ALL), conflicts_with = "ids", help_heading = "Instead of ids")]
    status: Vec<Status>,
    /// Jobs of this type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "ids", help_heading = "Instead of ids")]
    job_type: Option<String>,
    /// Jobs that ended (unfinished ones: were enqueued) longer ago than this, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = parse::duration, conflicts_with = "ids", help_heading = "Instead of ids")]
    older_than: Option<Duration>,
    /// The same as an instant: RFC 3339, or a local date and time such as "2026-12-01 03:00"
    #[arg(long, value_name = "TIME", value_parser = parse::instant, conflicts_with = "ids", help_heading = "Instead of ids")]
    before: Option<Timestamp>,
    /// All jobs in the states that this command takes by default; required if there is no other filter
    #[arg(long, conflicts_with = "ids", help_heading = "Instead of ids")]
    all: bool,
    /// At most this many: those that ended first, or are due first
    #[arg(long, value_name = "N", value_parser = parse::count, conflicts_with = "ids", help_heading = "Instead of ids")]
    limit: Option<usize>,
    /// Change nothing; print how many jobs there are, and the ids of the first ones
    #[arg(long, conflicts_with = "ids", help_heading = "Instead of ids")]
    dry_run: bool,
}

/// Limits `--status` to the states that the command can change.
pub(super) fn states(status: clap::Arg, from: &'static [Status]) -> clap::Arg {
    status.value_parser(parse::status(from))
}

/// The command in words.
pub(super) struct Verb {
    /// The command.
    pub(super) name: &'static str,
    /// Its past participle.
    pub(super) done: &'static str,
    /// The states that it takes without `--status`.
    pub(super) default: &'static [Status],
    /// Whether a job takes its key again.
    pub(super) takes_keys: bool,
    /// Whether jobs are kept that a foreign key refers to.
    pub(super) keeps_referenced: bool,
}

/// The result of one batch, or the sum of several.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Jobs that were changed.
    changed: usize,
    /// Jobs that had left the given states or were deleted meanwhile.
    gone: usize,
    /// Jobs whose key another unfinished job holds.
    key_taken: usize,
    /// Jobs that cannot be deleted.
    kept: usize,
    /// Why they can't.
    obstacles: BTreeSet<String>,
}

impl From<BulkResult> for Batch {
    fn from(result: BulkResult) -> Self {
        let BulkResult { moved, gone, key_taken } = result;
        Self { changed: moved, gone, key_taken, ..Self::default() }
    }
}

impl From<Deleted> for Batch {
    fn from(result: Deleted) -> Self {
        let Deleted { deleted, gone, kept, obstacles } = result;
        Self { changed: deleted, gone, kept, obstacles, ..Self::default() }
    }
}

impl Which {
    /// The jobs that the filter names.
    ///
    /// # Errors
    /// If there is no filter.
    pub(super) fn selection(&self, verb: &Verb) -> Result<Selection, Failure> {
        let is_filter = !self.status.is_empty()
            || self.job_type.is_some()
            || self.older_than.is_some()
            || self.before.is_some()
            || self.all;
        if !is_filter {
            let default = words(verb.default);
            return Err(Failure::usage(format!("nothing says which jobs to {}", verb.name)).hint(format!(
                "give ids, or a filter such as `--type`; `--all` takes every job that is {default}; `--dry-run` shows which"
            )));
        }
        let states = if self.status.is_empty() { verb.default } else { &self.status };
        Ok(Selection {
            states: states.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            job_type: self.job_type.clone(),
            older_than: self.older_than,
            before: self.before,
            limit: self.limit.unwrap_or(usize::MAX),
        })
    }

    /// Changes the selected jobs. With `--dry-run`, only prints them.
    pub(super) async fn each(
        &self,
        verb: &Verb,
        selected: Selected,
        settings: &Settings,
        context: &Context,
        step: impl AsyncFn(Vec<JobRef>) -> Result<Batch, StoreError>,
    ) -> anyhow::Result<Code> {
        if selected.jobs.is_empty()
            && let Some(hint) = self.job_type.as_deref().and_then(|typed| unknown_type(typed, settings))
        {
            talk(hint);
        }
        if self.dry_run {
            return would(verb.name, &selected, context);
        }
        let sum = in_batches(verb, &selected.jobs, step).await?;
        if sum.key_taken > 0 {
            talk(format!("left {} alone: another unfinished job holds the key", jobs(sum.key_taken)));
        }
        if sum.gone > 0 {
            talk(format!("left {} alone: changed meanwhile", jobs(sum.gone)));
        }
        for obstacle in &sum.obstacles {
            talk(format!("left {} alone: {obstacle}", jobs(sum.kept)));
        }
        let mut object = json!({ verb.done: sum.changed, "changed_meanwhile": sum.gone });
        if verb.takes_keys {
            object["key_taken"] = sum.key_taken.into();
        }
        if verb.keeps_referenced {
            object["kept"] = sum.kept.into();
        }
        output::one(context.format(), &object, || format!("{} {}", verb.done, jobs(sum.changed)))?;
        Ok(Code::Ok)
    }
}

/// What became of a job that was named by its id.
#[derive(Debug, Serialize)]
struct One<'a> {
    id: &'a str,
    /// The state it was in; `None` if nothing was done.
    was: Option<&'static str>,
    /// The state it is in now, or `deleted`; `None` if nothing was done.
    status: Option<&'static str>,
    error: Option<String>,
}

/// Changes each job by `act`, which returns the state it was in; afterwards it is `now`. A job that isn't found or whose state
/// forbids it doesn't keep the others from being changed. The first error decides the exit code.
///
/// The calls of a batch run at the same time, so that the store commits them together.
pub(super) async fn each_id<F>(
    ids: &[Id],
    now: &'static str,
    format: Format,
    act: impl Fn(Id) -> F,
) -> anyhow::Result<Code>
where
    F: Future<Output = anyhow::Result<Status>> + Send + 'static,
{
    let (mut code, mut done) = (Code::Ok, Vec::new());
    let mut line = (format != Format::Table).then(LiveLine::on_stderr).flatten();
    for batch in ids.chunks(BATCH) {
        for (id, was) in batch.iter().zip(at_once(batch, &act).await?) {
            let one = One { id: id.as_str(), was: None, status: None, error: None };
            match was {
                Ok(was) => {
                    if format == Format::Table {
                        talk(format!("{id} was {was} and is {now} now"));
                    }
                    done.push(One { was: Some(was.as_str()), status: Some(now), ..one });
                }
                Err(error) if matches!(code_of(&error), Code::NotFound | Code::Conflict | Code::Usage) => {
                    let own = report(&error);
                    code = if code == Code::Ok { own } else { code };
                    done.push(One { error: Some(error.to_string()), ..one });
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(line) = &mut line {
            line.draw(&format!("{now} {} of {}", done.len(), ids.len()));
        }
    }
    drop(line);
    if format != Format::Table {
        output::many(format, &done, String::new)?;
    }
    Ok(code)
}

/// The results of `act` in the order of `ids`.
async fn at_once<F>(ids: &[Id], act: impl Fn(Id) -> F) -> anyhow::Result<Vec<anyhow::Result<Status>>>
where
    F: Future<Output = anyhow::Result<Status>> + Send + 'static,
{
    let mut calls = JoinSet::new();
    for (at, id) in ids.iter().enumerate() {
        let call = act(id.clone());
        calls.spawn(async move { (at, call.await) });
    }
    let mut results = Vec::with_capacity(ids.len());
    while let Some(result) = calls.join_next().await {
        results.push(result?);
    }
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Prints what a dry run found.
pub(super) fn would(verb: &str, selected: &Selected, context: &Context) -> anyhow::Result<Code> {
    let (count, first) = (selected.jobs.len(), selected.first.iter().map(Id::as_str).collect::<Vec<_>>());
    let object = json!({ "dry_run": true, "matched": count, "first": first });
    output::one(context.format(), &object, || {
        let mut lines = vec![format!("would {verb} {}", jobs(count))];
        lines.extend(first.iter().map(|id| format!("  {}", output::cell(id, 255))));
        let more = count.saturating_sub(first.len());
        lines.extend((more > 0).then(|| format!("  and {more} more")));
        lines.join("\n")
    })?;
    Ok(Code::Ok)
}

async fn in_batches(
    verb: &Verb,
    jobs: &[JobRef],
    step: impl AsyncFn(Vec<JobRef>) -> Result<Batch, StoreError>,
) -> anyhow::Result<Batch> {
    let mut sum = Batch::default();
    let mut line = LiveLine::on_stderr();
    let (mut left, mut size) = (jobs, BATCH);
    while !left.is_empty() {
        let (now, later) = left.split_at(size.min(left.len()));
        let batch = match step(now.to_vec()).await {
            // A smaller batch needs less write-ahead log.
            Err(StoreError::Full(_)) if size > 1 => {
                size = (size / SHRINK).max(1);
                continue;
            }
            Err(error) => {
                let so_far = format!("{} of {} jobs were {} before this", sum.changed, jobs.len(), verb.done);
                return Err(anyhow::Error::new(error).context(so_far));
            }
            Ok(batch) => batch,
        };
        left = later;
        sum.changed += batch.changed;
        sum.gone += batch.gone;
        sum.key_taken += batch.key_taken;
        sum.kept += batch.kept;
        sum.obstacles.extend(batch.obstacles);
        if let Some(line) = &mut line {
            line.draw(&format!("{} {} of {}", verb.done, sum.changed, jobs.len()));
        }
    }
    Ok(sum)
}

pub(super) fn jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

/// `failed, dead or cancelled`
fn words(states: &[Status]) -> String {
    let words: Vec<&str> = states.iter().map(|status| status.as_str()).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
