//! `retry` and `cancel` take ids, or a filter that names many jobs. Those are moved in batches, each a transaction of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::context::Context;
use super::exit::{Code, Failure, code_of, report};
use super::list::unknown_type;
use super::output::{self, Format, talk};
use super::parse;
use super::terminal::LiveLine;
use crate::config::Settings;
use crate::queue::{BulkResult, Id, JobRef, Selected, Selection, Status, StoreError, Timestamp};

/// Jobs moved in one transaction: some milliseconds, so that nobody waits for long.
const BATCH: usize = 500;

/// The flags that say which jobs.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The ids of the jobs
    #[arg(value_name = "ID", value_parser = Id::parse)]
    pub(super) ids: Vec<Id>,
    /// Jobs in this state; can be given more than once
    #[arg(long, ignore_case = true, value_parser = parse::status(&Status::ALL), conflicts_with = "ids", help_heading = "Instead of ids")]
    status: Vec<Status>,
    /// Jobs of this type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "ids", help_heading = "Instead of ids")]
    job_type: Option<String>,
    /// Jobs that ended, or else were enqueued, longer ago than this, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = parse::duration, conflicts_with = "ids", help_heading = "Instead of ids")]
    older_than: Option<Duration>,
    /// The same as an instant: RFC 3339, or a local date and time such as "2026-12-01 03:00"
    #[arg(long, value_name = "TIME", value_parser = parse::instant, conflicts_with = "ids", help_heading = "Instead of ids")]
    before: Option<Timestamp>,
    /// Every job that is taken where no `--status` is given; needed where nothing else says which
    #[arg(long, conflicts_with = "ids", help_heading = "Instead of ids")]
    all: bool,
    /// At most so many of them, the longest ended or first due
    #[arg(long, value_name = "N", value_parser = parse::count, conflicts_with = "ids", help_heading = "Instead of ids")]
    limit: Option<usize>,
    /// Change nothing: say how many jobs there are, and the ids of the first ones
    #[arg(long, conflicts_with = "ids", help_heading = "Instead of ids")]
    dry_run: bool,
}

/// Lets `--status` name only the states that the command can do something with.
pub(super) fn states(status: clap::Arg, from: &'static [Status]) -> clap::Arg {
    status.value_parser(parse::status(from))
}

/// What a command does with the jobs, in words.
pub(super) struct Verb {
    /// The command.
    pub(super) name: &'static str,
    /// What it has done.
    pub(super) done: &'static str,
    /// The states that it takes where no `--status` says so.
    pub(super) default: &'static [Status],
    /// Whether a job takes its key again.
    pub(super) takes_keys: bool,
}

impl Which {
    /// The jobs that the filter names.
    ///
    /// # Errors
    /// Where there is no filter.
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

    /// Moves what was selected, or with `--dry-run` only tells it.
    pub(super) async fn each(
        &self,
        verb: &Verb,
        selected: Selected,
        settings: &Settings,
        context: &Context,
        step: impl AsyncFn(Vec<JobRef>) -> Result<BulkResult, StoreError>,
    ) -> anyhow::Result<Code> {
        if selected.jobs.is_empty()
            && let Some(hint) = self.job_type.as_deref().and_then(|typed| unknown_type(typed, settings))
        {
            talk(hint);
        }
        if self.dry_run {
            return would(verb.name, &selected, context);
        }
        let moved = in_batches(verb, &selected.jobs, step).await?;
        if moved.key_taken > 0 {
            talk(format!("left {} alone: another unfinished job holds the key", jobs(moved.key_taken)));
        }
        if moved.gone > 0 {
            talk(format!("left {} alone: changed meanwhile", jobs(moved.gone)));
        }
        let mut object = json!({ verb.done: moved.moved, "changed_meanwhile": moved.gone });
        if verb.takes_keys {
            object["key_taken"] = moved.key_taken.into();
        }
        output::one(context.format(), &object, || format!("{} {}", verb.done, jobs(moved.moved)))?;
        Ok(Code::Ok)
    }
}

/// What became of a job that was named by its id.
#[derive(Debug, Serialize)]
struct One<'a> {
    id: &'a str,
    /// The state it was in; `None` where nothing was done.
    was: Option<&'static str>,
    /// The state it is in now; `None` where nothing was done.
    status: Option<&'static str>,
    error: Option<String>,
}

/// Handles ids one after the other; what goes wrong with one keeps nothing from the others. The first problem decides the exit code.
/// `act` tells the state that the job was in; it is in `now` afterwards.
pub(super) async fn each_id(
    ids: &[Id],
    now: Status,
    format: Format,
    act: impl AsyncFn(&Id) -> anyhow::Result<Status>,
) -> anyhow::Result<Code> {
    let (mut code, mut done) = (Code::Ok, Vec::new());
    for id in ids {
        let one = One { id: id.as_str(), was: None, status: None, error: None };
        match act(id).await {
            Ok(was) => {
                if format == Format::Table {
                    talk(format!("{id} was {was} and is {now} now"));
                }
                done.push(One { was: Some(was.as_str()), status: Some(now.as_str()), ..one });
            }
            Err(error) if matches!(code_of(&error), Code::NotFound | Code::Conflict) => {
                let own = report(&error);
                code = if code == Code::Ok { own } else { code };
                done.push(One { error: Some(error.to_string()), ..one });
            }
            Err(error) => return Err(error),
        }
    }
    if format != Format::Table {
        output::many(format, &done, String::new)?;
    }
    Ok(code)
}

/// What a dry run prints.
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
    step: impl AsyncFn(Vec<JobRef>) -> Result<BulkResult, StoreError>,
) -> anyhow::Result<BulkResult> {
    let mut sum = BulkResult::default();
    let mut line = LiveLine::on_stderr();
    for batch in jobs.chunks(BATCH) {
        let moved = step(batch.to_vec()).await.map_err(|error| {
            let so_far = format!("{} of {} jobs were {} before this", sum.moved, jobs.len(), verb.done);
            anyhow::Error::new(error).context(so_far)
        })?;
        sum.moved += moved.moved;
        sum.gone += moved.gone;
        sum.key_taken += moved.key_taken;
        if let Some(line) = &mut line {
            line.draw(&format!("{} {} of {}", verb.done, sum.moved, jobs.len()));
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
