//! `jobq bench held`: many attempts that hold a lease at once, each a guest that sleeps in its own sandbox.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::delivery::Delivery;
use super::ground::Place;
use super::guests::Guests;
use super::machine::Machine;
use super::observer::Observer;
use super::progress::Progress;
use super::rig::{self, Durability, Rig};
use super::subject::Subject;
use super::vitals::{Vitals, megabytes};
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output;
use crate::cli::parse::{duration, positive};
use crate::queue::{JobType, Payload, Store};
use crate::sandbox::Limits;
use crate::worker::{Rule, WorkerOptions};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Every attempt sleeps for the time of --hold, which must be enough to start all of them. The memory
is that of this process, which is daemon and client in one. Exit code 1 says that not all were
held at once, or that one was not done exactly once.

Examples:
  jobq bench held
  jobq bench held --attempts 1000 --hold 5s -o json";

/// A component whose handler sleeps (source: `tests/guests/handlers/sleep.rs`).
const SLEEP: &[u8] = include_bytes!("../../../../tests/guests/sleep.wasm");

/// Jobs in one enqueue.
const BATCH: usize = 1000;

/// How often it is looked how many are there.
const LOOK: Duration = Duration::from_millis(20);

/// What a guest may take longer than it sleeps.
const SLACK: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// How many attempts
    #[arg(long, default_value = "10000", value_parser = positive::<NonZeroU32>)]
    attempts: NonZeroU32,
    /// How long each sleeps
    #[arg(long, default_value = "20s", value_parser = duration)]
    hold: Duration,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Serialize)]
struct Report {
    /// The most that held a lease at once, each with its guest in the sandbox.
    held_at_once: u64,
    seconds_to_hold: f64,
    rss_before_mb: f64,
    peak_rss_mb: f64,
    delivered_once: bool,
    settings: Settings,
    machine: Machine,
}

#[derive(Debug, Serialize)]
struct Settings {
    attempts: u32,
    hold_s: f64,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let mut options = rig::options(&context.settings()?);
    let subject = subject(args.hold)?;
    options.concurrency = args.attempts;
    let limits = Limits { timeout: args.hold.saturating_add(SLACK), ..Limits::default() };
    options.rules.by_type.insert(subject.job_type.clone(), Arc::new(Rule { limits, ..Rule::default() }));
    let (report, delivery) = args.place.run(async |ground| measure(args, &subject, &options, &ground).await)?;
    output::one(context.format(), &report, || people(&report))?;
    Delivery::require([delivery])?;
    if report.held_at_once < u64::from(args.attempts.get()) {
        let message = format!("only {} of {} attempts held a lease at once", report.held_at_once, args.attempts);
        return Err(Failure::new(Code::Unexpected, message).hint("`--hold` lets each last longer").into());
    }
    Ok(Code::Ok)
}

fn subject(hold: Duration) -> anyhow::Result<Subject> {
    let payload = Payload::parse(format!("{{\"ms\": {}}}", hold.as_millis()), 100)?;
    Ok(Subject { job_type: JobType::parse("sleep")?, wasm: SLEEP.to_vec(), payload })
}

async fn measure(
    args: &Args,
    subject: &Subject,
    options: &WorkerOptions,
    ground: &Path,
) -> anyhow::Result<(Report, Delivery)> {
    let machine = Machine::look(ground);
    let guests = Guests::load(ground, &[subject], options).await?;
    let observer = Arc::new(Observer::of(subject, guests.handlers()));
    let rig = Rig::start(ground, Durability::Full, observer.clone(), options.clone())?;
    let (before, attempts, started) = (Vitals::of_self()?, args.attempts.get() as usize, Instant::now());
    let mut jobs = (0..attempts).map(|_| subject.job()).peekable();
    while jobs.peek().is_some() {
        rig.store.enqueue(jobs.by_ref().take(BATCH).collect()).await?;
        rig.pool.waker().wake();
    }
    let mut progress = Progress::on_stderr();
    progress.say(&format!("{attempts} guests sleep for {:?}", args.hold));
    while observer.most_at_once() < attempts as u64 && rig.pool.recorded() < attempts as u64 {
        tokio::time::sleep(LOOK).await;
    }
    let seconds_to_hold = started.elapsed().as_secs_f64();
    rig.await_ends(attempts as u64).await?;
    let after = Vitals::of_self()?;
    let remains = rig.stop().await;
    let delivery = Delivery::check(&remains.store, subject, attempts).await?;
    remains.store.close().await;
    let report = Report {
        held_at_once: observer.most_at_once(),
        seconds_to_hold,
        rss_before_mb: megabytes(before.rss),
        peak_rss_mb: megabytes(after.peak_rss),
        delivered_once: delivery.once(),
        settings: Settings { attempts: args.attempts.get(), hold_s: args.hold.as_secs_f64() },
        machine,
    };
    Ok((report, delivery))
}

fn people(report: &Report) -> String {
    format!(
        "{:>8} attempts held a lease at once, after {:.2} s\n{:>8.1} MB of memory at most, {:.1} before\n\
         {} guests that sleep for {} s\n{}\nevery job done exactly once: {}",
        report.held_at_once,
        report.seconds_to_hold,
        report.peak_rss_mb,
        report.rss_before_mb,
        report.settings.attempts,
        report.settings.hold_s,
        report.machine.people(),
        if report.delivered_once { "yes" } else { "NO" },
    )
}
