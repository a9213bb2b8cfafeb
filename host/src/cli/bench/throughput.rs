//! `jobq bench throughput`: jobs from enqueue to completed, through a fresh queue and the daemon's own pool,
//! beside the two floors that this is made of: the store without a sandbox, the sandbox without a store.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::delivery::Delivery;
use super::disk;
use super::figures::{median, rate};
use super::ground::Place;
use super::guests::Guests;
use super::load::{Driven, Load};
use super::machine::Machine;
use super::progress::Progress;
use super::rig::{self, Durability, Rig};
use super::subject::{Named, Subject, SubjectArgs, filler};
use crate::cli::context::Context;
use crate::cli::exit::Code;
use crate::cli::output::{self, Column};
use crate::cli::parse::positive;
use crate::worker::{Handlers, NativeHandlers, WorkerOptions};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Limits, grants and concurrency are those of jobq.toml, where there is one. Three things are
measured in turn: the store floor (the same queue and pool, with a native function that does
nothing for a handler), the sandbox floor (the handler without a queue), and the whole.
Exit code 1 says that a job was not done exactly once.

Examples:
  jobq bench throughput
  jobq bench throughput --all --dir /var/lib/jobq
  jobq bench throughput --outstanding 256 --durability full --jobs 50000 --runs 3 -o json
  jobq bench throughput --plugin plugins/send_email.wasm --payload @mail.json --jobs 1000";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    load: Load,
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "full")]
    durability: Durability,
    #[command(flatten)]
    subject: SubjectArgs,
    /// Attempts at once [default: as in the settings]
    #[arg(long, value_parser = positive::<NonZeroU32>)]
    concurrency: Option<NonZeroU32>,
    /// Measure so many times; the figures are medians
    #[arg(long, default_value = "1", value_parser = positive::<NonZeroUsize>)]
    runs: NonZeroUsize,
    /// Measure the usual combinations one after the other, and print a table or an array
    #[arg(long, conflicts_with_all = ["outstanding", "batch", "durability", "payload", "payload_bytes"])]
    all: bool,
    #[command(flatten)]
    place: Place,
}

/// One combination.
struct Case {
    load: Load,
    durability: Durability,
    subject: Subject,
}

impl Case {
    fn describe(&self) -> String {
        let (Load { jobs, outstanding, batch }, durability) = (self.load, self.durability.word());
        format!("{jobs} jobs, {outstanding} outstanding, {batch} an enqueue, durability {durability}")
    }
}

#[derive(Debug, Serialize)]
struct Report {
    jobs_per_s: f64,
    store_floor_per_s: f64,
    sandbox_floor_per_s: f64,
    /// Of the slower floor.
    ratio_to_floor: f64,
    delivered_once: bool,
    enqueued_per_s: f64,
    commits_per_job: f64,
    fsyncs_per_s: f64,
    runs: Vec<Run>,
    settings: Settings,
    machine: Machine,
}

/// What was asked for.
#[derive(Debug, Serialize)]
struct Settings {
    jobs: usize,
    outstanding: usize,
    batch: usize,
    durability: Durability,
    #[serde(flatten)]
    subject: Named,
    concurrency: u32,
}

/// One time round: both floors and the whole.
#[derive(Debug, Serialize)]
struct Run {
    jobs_per_s: f64,
    store_floor_per_s: f64,
    sandbox_floor_per_s: f64,
    ratio_to_floor: f64,
    enqueued_per_s: f64,
    commits_per_job: f64,
    fsyncs_per_s: f64,
    #[serde(skip)]
    deliveries: [Delivery; 2],
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let subject = args.subject.read(&settings)?;
    let mut options = rig::options(&context.load_to_try(&subject.job_type)?);
    options.concurrency = args.concurrency.unwrap_or(options.concurrency);
    let cases = cases(args, subject)?;
    let reports = args.place.run(async |ground| {
        let machine = Machine::look(&ground);
        let (mut reports, mut progress) = (Vec::new(), Progress::on_stderr());
        for case in &cases {
            progress.say(&case.describe());
            reports.push(measure(case, args.runs, &options, &ground, machine.clone()).await?);
        }
        Ok(reports)
    })?;
    match &reports[..] {
        [report] if !args.all => output::one(context.format(), report, || people(report))?,
        reports => output::many(context.format(), reports, || table(reports))?,
    }
    Delivery::require(reports.into_iter().flat_map(|report| report.runs).flat_map(|run| run.deliveries))?;
    Ok(Code::Ok)
}

/// What is to be measured.
fn cases(args: &Args, subject: Subject) -> anyhow::Result<Vec<Case>> {
    let Args { load, durability, all, .. } = args;
    if !all {
        return Ok(vec![Case { load: *load, durability: *durability, subject }]);
    }
    let mut cases = Vec::new();
    let large = Subject { payload: filler(4096)?, ..subject.clone() };
    for durability in [Durability::Full, Durability::Normal] {
        for (outstanding, batch, subject) in
            [(1, 1, &subject), (16, 1, &subject), (256, 1, &subject), (16, 100, &subject), (256, 1, &large)]
        {
            let few = if outstanding == 1 { 10 } else { 1 };
            let number = |number: usize| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
            let (jobs, outstanding, batch) = (number(load.jobs.get() / few), number(outstanding), number(batch));
            cases.push(Case { load: Load { jobs, outstanding, batch }, durability, subject: subject.clone() });
        }
    }
    Ok(cases)
}

async fn measure(
    case: &Case,
    runs: NonZeroUsize,
    options: &WorkerOptions,
    ground: &Path,
    machine: Machine,
) -> anyhow::Result<Report> {
    let guests = Guests::load(ground, &[&case.subject], options).await?;
    guests.rehearse(&case.subject, options.rules.of(case.subject.job_type.as_str())).await?;
    let mut done = Vec::new();
    for _ in 0..runs.get() {
        done.push(round(case, &guests, options, ground).await?);
    }
    let of = |figure: fn(&Run) -> f64| median(done.iter().map(figure));
    Ok(Report {
        jobs_per_s: of(|run| run.jobs_per_s),
        store_floor_per_s: of(|run| run.store_floor_per_s),
        sandbox_floor_per_s: of(|run| run.sandbox_floor_per_s),
        ratio_to_floor: of(|run| run.ratio_to_floor),
        delivered_once: done.iter().flat_map(|run| &run.deliveries).all(Delivery::once),
        enqueued_per_s: of(|run| run.enqueued_per_s),
        commits_per_job: of(|run| run.commits_per_job),
        fsyncs_per_s: of(|run| run.fsyncs_per_s),
        runs: done,
        settings: Settings {
            jobs: case.load.jobs.get(),
            outstanding: case.load.outstanding.get(),
            batch: case.load.batch.get(),
            durability: case.durability,
            subject: case.subject.named(),
            concurrency: options.concurrency.get(),
        },
        machine,
    })
}

async fn round(case: &Case, guests: &Guests, options: &WorkerOptions, ground: &Path) -> anyhow::Result<Run> {
    let Case { load, subject, .. } = case;
    let jobs = load.jobs.get() as u64;
    let fsyncs_per_s = disk::syncs_per_second(ground).await?;
    let native = NativeHandlers::new().on(subject.job_type.as_str(), |_| async { Ok(String::new()) });
    let (store, store_delivery) = through_a_queue(case, Arc::new(native), options, ground).await?;
    let sandbox_floor_per_s = guests.floor(subject, options.rules.of(subject.job_type.as_str()), jobs).await?;
    let (whole, delivery) = through_a_queue(case, guests.handlers(), options, ground).await?;
    let (jobs_per_s, store_floor_per_s) = (rate(jobs, whole.total), rate(jobs, store.total));
    Ok(Run {
        jobs_per_s,
        store_floor_per_s,
        sandbox_floor_per_s,
        ratio_to_floor: jobs_per_s / store_floor_per_s.min(sandbox_floor_per_s),
        enqueued_per_s: rate(jobs, whole.enqueued),
        commits_per_job: whole.commits as f64 / jobs as f64,
        fsyncs_per_s,
        deliveries: [store_delivery, delivery],
    })
}

async fn through_a_queue(
    case: &Case,
    handlers: Arc<dyn Handlers>,
    options: &WorkerOptions,
    ground: &Path,
) -> anyhow::Result<(Driven, Delivery)> {
    let rig = Rig::start(ground, case.durability, handlers, options.clone())?;
    let driven = case.load.drive(&rig, &case.subject).await?;
    let remains = rig.stop().await;
    let delivery = Delivery::check(&remains.store, &case.subject, case.load.jobs.get()).await?;
    remains.store.close().await;
    Ok((driven, delivery))
}

fn people(report: &Report) -> String {
    let Report { settings, machine, .. } = report;
    let runs = if report.runs.len() > 1 { format!(", medians of {}", report.runs.len()) } else { String::new() };
    format!(
        "{:>8.0} jobs/s from enqueue to completed\n\
         {:>8.0} jobs/s store floor: a native handler that does nothing\n\
         {:>8.0} jobs/s sandbox floor: the handler without a queue\n\
         {:>8.0} % of the slower floor\n\
         {:>8.0} fsyncs/s on this disk in the same run, {:.3} commits a job\n\
         {} jobs of `{}`, {} B payload, {} outstanding, {} an enqueue, durability {}, {} slots{runs}\n\
         {}\n\
         every job done exactly once: {}",
        report.jobs_per_s,
        report.store_floor_per_s,
        report.sandbox_floor_per_s,
        report.ratio_to_floor * 100.0,
        report.fsyncs_per_s,
        report.commits_per_job,
        settings.jobs,
        settings.subject.plugin,
        settings.subject.payload_bytes,
        settings.outstanding,
        settings.batch,
        settings.durability.word(),
        settings.concurrency,
        machine.people(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}

fn table(reports: &[Report]) -> String {
    let columns = [
        Column::Whole("DURABILITY"),
        Column::Whole("OUTSTANDING"),
        Column::Whole("BATCH"),
        Column::Whole("PAYLOAD"),
        Column::Whole("JOBS/S"),
        Column::Whole("STORE"),
        Column::Whole("SANDBOX"),
        Column::Whole("RATIO"),
        Column::Whole("COMMITS/JOB"),
        Column::Whole("FSYNCS/S"),
        Column::Whole("ONCE"),
    ];
    let row = |report: &Report| {
        [
            report.settings.durability.word().to_owned(),
            report.settings.outstanding.to_string(),
            report.settings.batch.to_string(),
            report.settings.subject.payload_bytes.to_string(),
            format!("{:.0}", report.jobs_per_s),
            format!("{:.0}", report.store_floor_per_s),
            format!("{:.0}", report.sandbox_floor_per_s),
            format!("{:.2}", report.ratio_to_floor),
            format!("{:.3}", report.commits_per_job),
            format!("{:.0}", report.fsyncs_per_s),
            if report.delivered_once { "yes" } else { "NO" }.to_owned(),
        ]
    };
    let machine = reports.first().map_or_else(String::new, |report| report.machine.people());
    format!("{}\n\n{machine}", output::table(columns, reports.iter().map(row)))
}
