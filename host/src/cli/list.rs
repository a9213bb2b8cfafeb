//! `jobq list`: many jobs, a line each.

use clap::ValueEnum;
use comfy_table::Cell;

use super::context::{Context, known_types};
use super::daemons::{self, Service};
use super::exit::{Code, Failure};
use super::output::{self, Column, Format, Objects, cell, talk};
use super::{parse, render, terminal, when};
use crate::config::{Settings, suggest};
use crate::plugins::{NotServed, PluginTypes};
use crate::queue::{Daemon, Filter, Id, JobSummary, Order, Page, Resolved, Status, Store, Timestamp};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Dead, completed and cancelled jobs are listed by their end, the latest first; others by their creation, the newest first.
A job that a daemon has claimed and not started yet is pending. On a terminal, ids may be shortened:
every command takes the beginning of an id.

Examples:
  jobq list --status dead                  what has failed for good, and why
  jobq list --status pending,failed --sort scheduled
  jobq list --type send_email --limit 5
  jobq list --status dead -q | xargs jobq retry
  jobq list -o ndjson | jq -r .id          one JSON object a line, exact instants";

/// Jobs that are read at once: a short snapshot, and little memory whatever the limit.
const PAGE: usize = 500;

/// Matching jobs are counted up to here.
const COUNTED: usize = 100_000;

/// Ids are shortened on a terminal that is narrower.
const WIDE: u16 = 110;

/// The shortest form of an id: the time of a UUID version 7.
const SHORT_ID: usize = 13;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only jobs in these states; several with commas, or given more than once
    #[arg(long, ignore_case = true, value_delimiter = ',', value_parser = parse::status(&Status::ALL))]
    status: Vec<Status>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// By creation or end, the latest first, or by schedule, the next first
    #[arg(long, value_name = "ORDER", value_enum)]
    sort: Option<Sort>,
    /// The most to list
    #[arg(long, value_name = "N", value_parser = parse::count, default_value_t = 50)]
    limit: usize,
    /// Print the ids alone, one a line
    #[arg(short = 'q', long)]
    id_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    Created,
    Ended,
    Scheduled,
}

impl Args {
    fn order(&self) -> Result<Order, Failure> {
        let all = |fits: fn(Status) -> bool| self.status.iter().all(|status| fits(*status));
        let wrong = |sort, states| Err(Failure::usage(format!("`--sort {sort}` lists only {states} jobs")));
        match self.sort {
            Some(Sort::Created) => Ok(Order::Created),
            None if self.status.is_empty() || !all(Status::is_terminal) => Ok(Order::Created),
            None => Ok(Order::Ended),
            Some(Sort::Ended) if all(Status::is_terminal) => Ok(Order::Ended),
            Some(Sort::Ended) => wrong("ended", "completed, dead and cancelled"),
            Some(Sort::Scheduled) if all(is_waiting) => Ok(Order::Scheduled),
            Some(Sort::Scheduled) => wrong("scheduled", "pending and failed"),
        }
    }

    fn filter(&self) -> Result<Filter, Failure> {
        let (states, job_type, order) = (self.status.clone(), self.job_type.clone(), self.order()?);
        Ok(Filter { states, job_type, order, after: None, limit: self.limit })
    }
}

const fn is_waiting(status: Status) -> bool {
    matches!(status, Status::Pending | Status::Failed)
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let filter = args.filter()?;
    let settings = context.settings()?;
    let store = context.open_to_read(&settings)?;
    context.block_on(async {
        let found = match context.format() {
            _ if args.id_only => print_ids(&*store, &filter).await?,
            Format::Table => print_table(&*store, &filter, &settings).await?,
            format => print_objects(&*store, &filter, format).await?,
        };
        if found == 0 {
            match args.job_type.as_deref().and_then(|typed| unknown_type(typed, &settings)) {
                Some(hint) => talk(hint),
                None if !args.status.is_empty() || args.job_type.is_some() => talk("no job matches"),
                None => talk("there are no jobs"),
            }
        }
        Ok(Code::Ok)
    })
}

/// Calls `each` for the jobs of all pages. Returns their number and whether there may be more.
async fn in_pages<J>(
    filter: &Filter,
    read: impl AsyncFn(Filter) -> Result<Page<J>, crate::queue::StoreError>,
    mut each: impl FnMut(J) -> anyhow::Result<()>,
) -> anyhow::Result<(usize, bool)> {
    let (mut found, mut after) = (0, None);
    loop {
        let limit = filter.limit.saturating_sub(found).min(PAGE);
        let page = read(Filter { after, limit, ..filter.clone() }).await?;
        found += page.jobs.len();
        page.jobs.into_iter().try_for_each(&mut each)?;
        after = page.next;
        if after.is_none() || found >= filter.limit {
            return Ok((found, after.is_some()));
        }
    }
}

async fn print_objects(store: &dyn Store, filter: &Filter, format: Format) -> anyhow::Result<usize> {
    let mut objects = Objects::new(format);
    let (found, _) =
        in_pages(filter, async |page| store.list(page).await, |job| objects.add(&render::job(&job))).await?;
    objects.end()?;
    Ok(found)
}

async fn print_ids(store: &dyn Store, filter: &Filter) -> anyhow::Result<usize> {
    let print = |job: JobSummary| output::print(&cell(job.id.as_str(), 255));
    Ok(in_pages(filter, async |page| store.summaries(page).await, print).await?.0)
}

async fn print_table(store: &dyn Store, filter: &Filter, settings: &Settings) -> anyhow::Result<usize> {
    let mut jobs = Vec::new();
    let keep = |job| {
        jobs.push(job);
        Ok(())
    };
    let (found, more) = in_pages(filter, async |page| store.summaries(page).await, keep).await?;
    if found == 0 {
        return Ok(0);
    }
    let running = daemons::running(store).await?;
    let ids = shown_ids(store, &jobs).await?;
    output::print(&table(&jobs, ids, &running, settings))?;
    if more {
        let all = store.matching(filter.clone(), COUNTED + 1).await?;
        // There are none where the last page was full.
        if all > found {
            let all = if all > COUNTED { format!("more than {}", grouped(COUNTED)) } else { grouped(all) };
            talk(format!("{} of {all} jobs; `--limit` lists more", grouped(found)));
        }
    }
    Ok(found)
}

/// The ids to print. On a narrow terminal they are shortened as far as each still names one job.
async fn shown_ids(store: &dyn Store, jobs: &[JobSummary]) -> anyhow::Result<Vec<String>> {
    let whole = |job: &JobSummary| cell(job.id.as_str(), 255);
    if terminal::width().is_none_or(|width| width >= WIDE) || jobs.len() > PAGE {
        return Ok(jobs.iter().map(whole).collect());
    }
    let mut length = SHORT_ID;
    for job in jobs {
        while let Some(short) = beginning(&job.id, length)
            && store.resolve(&short).await? != Resolved::Job(job.id.clone())
        {
            length += 1;
        }
    }
    let short = |job: &JobSummary| beginning(&job.id, length).map_or_else(|| whole(job), |id| cell(id.as_str(), 255));
    Ok(jobs.iter().map(short).collect())
}

/// The first characters of an id; `None` where it has no more than that.
fn beginning(id: &Id, length: usize) -> Option<Id> {
    let (end, _) = id.as_str().char_indices().nth(length)?;
    Id::parse(&id.as_str()[..end]).ok()
}

/// A hint if neither the settings nor the plugins have this type.
pub(super) fn unknown_type(typed: &str, settings: &Settings) -> Option<String> {
    let known = known_types(settings);
    if known.iter().any(|name| name == typed) {
        return None;
    }
    let near = suggestion(typed, &known);
    Some(format!("no job has the type `{}`, and nothing serves it{near}", cell(typed, 64)))
}

/// Why no jobs of this type run, with a suggestion for a misspelt name.
pub(super) fn unserved(job_type: &str, running: &[Daemon], settings: &Settings) -> Option<String> {
    let quoted = cell(job_type, 64);
    match Service::of(job_type, running) {
        Service::Served => None,
        Service::Broken => Some(format!("no running daemon can load the plugin of `{quoted}`")),
        Service::Unserved { .. } => {
            let served: Vec<String> =
                running.iter().flat_map(|daemon| &daemon.plugins).map(|plugin| plugin.job_type.clone()).collect();
            Some(format!("no running daemon serves `{quoted}`{}", suggestion(job_type, &served)))
        }
        Service::NoDaemon => match PluginTypes::read(&settings.plugins).serving(job_type) {
            Ok(_) | Err(NotServed::FileMissing { .. }) => None,
            Err(_) => Some(format!("nothing serves `{quoted}`{}", suggestion(job_type, &known_types(settings)))),
        },
    }
}

fn suggestion(typed: &str, known: &[String]) -> String {
    let near = suggest::closest(typed, known.iter().map(String::as_str));
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

fn table(jobs: &[JobSummary], ids: Vec<String>, running: &[Daemon], settings: &Settings) -> String {
    let now = Timestamp::now();
    let columns = [
        Column::Whole("ID"),
        Column::Cut("TYPE"),
        Column::Whole("STATUS"),
        Column::Spare("WHEN"),
        Column::Extra("ATTEMPTS"),
        Column::Extra("PRIO"),
        Column::Spare("NOTE"),
    ];
    let row = |(job, id): (&JobSummary, String)| {
        [
            Cell::new(id),
            Cell::new(cell(&job.job_type, 64)),
            Cell::new(job.status).fg(terminal::of_status(job.status)),
            Cell::new(when::of_summary(job, now)),
            Cell::new(attempts(job, settings)),
            Cell::new(job.priority),
            Cell::new(note(job, running, settings)),
        ]
    };
    output::table(columns, jobs.iter().zip(ids).map(row))
}

/// Attempts so far, including the running one, and their limit.
pub(super) fn attempts(job: &JobSummary, settings: &Settings) -> String {
    let most = job.max_attempts.unwrap_or(settings.worker.job_types.of(&job.job_type).policy.max_attempts);
    let running = u32::from(job.status == Status::Running);
    format!("{}/{most}", job.attempts.saturating_add(running))
}

/// Progress, error, or why the job waits, depending on its state.
fn note(job: &JobSummary, running: &[Daemon], settings: &Settings) -> String {
    let claimed_by = job.worker.as_deref().filter(|_| job.lease_until.is_some());
    match (job.status, &job.progress, &job.error) {
        (Status::Running, Some((percent, message)), _) => cell(format!("{percent}% {message}").trim_end(), 60),
        (Status::Pending, ..) if claimed_by.is_some() => {
            format!("claimed by {}", cell(claimed_by.unwrap_or_default(), 60))
        }
        (Status::Failed | Status::Dead, _, Some(error)) => render::first_line(error, 60),
        (Status::Pending, ..) => match (unserved(&job.job_type, running, settings), &job.error) {
            (Some(reason), _) => reason,
            (None, Some(error)) => render::first_line(error, 60),
            (None, None) => String::new(),
        },
        _ => String::new(),
    }
}

/// `40,000`
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let comma = |(at, digit): (usize, char)| {
        let is_start = at > 0 && (digits.len() - at).is_multiple_of(3);
        is_start.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (40_000, "40,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn the_beginning_of_an_id_ends_between_characters() {
        let id = Id::stored("äöüß");
        assert_eq!(beginning(&id, 2), Some(Id::stored("äö")));
        assert_eq!(beginning(&id, 4), None);
    }
}
