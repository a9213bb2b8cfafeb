//! `jobq enqueue`: add one job, or many from a file in one transaction.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::context::{Context, known_types, require_known};
use super::exit::{Code, Failure};
use super::input::{read_file, read_payload};
use super::output::{self, talk};
use super::{parse, wait};
use crate::config::Settings;
use crate::queue::{Due, Enqueued, JobType, Key, NewJob, OpenMode, Payload, Priority};

/// The latest that a job may be due, from now.
const FARTHEST: Duration = Duration::from_secs(1000 * 366 * 86_400);

/// Bad lines of a bulk file that are told.
const MOST_PROBLEMS: usize = 20;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq enqueue process_csv @request.json --priority 1 --in 10s
  jobq enqueue send_email '{\"to\": \"ana@example.com\"}' --key welcome-42 --wait=30s
  jobq enqueue --bulk many.ndjson          one {\"type\", \"payload\", ...} a line, all or nothing

A bulk line has the fields type, payload, priority, at, in, max_attempts, timeout and key.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The job type
    #[arg(value_name = "TYPE", required_unless_present = "bulk", conflicts_with = "bulk")]
    job_type: Option<String>,
    /// JSON text, @FILE, or - for standard input [default: {}]
    #[arg(value_name = "JSON", conflicts_with = "bulk")]
    payload: Option<String>,
    #[command(flatten)]
    options: Options,
    /// Wait for the job to end, at most this long: result on stdout, id on stderr
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "forever",
          value_parser = limit, conflicts_with = "bulk")]
    wait: Option<Wait>,
    /// Take many jobs from a file of one JSON object a line, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["priority", "at", "delay", "max_attempts", "timeout", "key"])]
    bulk: Option<PathBuf>,
    /// Enqueue types that nothing serves yet
    #[arg(long)]
    force: bool,
}

/// What can be said about one job; the fields of a bulk line have the same names.
#[derive(Debug, Default, clap::Args)]
struct Options {
    /// Higher runs first, -32768 to 32767 [default: the type's]
    #[arg(long, value_name = "N", value_parser = parse::priority, allow_negative_numbers = true)]
    priority: Option<Priority>,
    /// Not before this instant: RFC 3339, or a local date and time such as "2026-12-01 03:00"
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    at: Option<String>,
    /// Not before this much time has passed, such as 10s or 2h
    #[arg(long = "in", value_name = "DURATION")]
    delay: Option<String>,
    /// Attempts before the job is dead [default: the type's]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Wall clock of one attempt [default: the type's]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// At most one unfinished job holds a key; enqueuing it again prints the id of the one that does
    #[arg(long)]
    key: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Wait(Option<Duration>);

fn limit(text: &str) -> Result<Wait, Failure> {
    if text == "forever" { Ok(Wait(None)) } else { parse::duration(text).map(|limit| Wait(Some(limit))) }
}

pub(super) fn run(args: Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    if let Some(file) = &args.bulk {
        return bulk(file, &settings, args.force, context);
    }
    let text = read_payload(args.payload.as_deref().unwrap_or("{}"), settings.queue.max_payload)?;
    let job = job(&args.job_type.unwrap_or_default(), text, &args.options, &settings)?;
    if !args.force {
        require_known(&job.job_type, &settings, &known_types(&settings))?;
    }
    let key = job.key.clone();
    let store = context.open(&settings, OpenMode::Create)?;
    context.block_on(async {
        let answers = store.enqueue(vec![job]).await?;
        let answer = answers.into_iter().next().context("the store did not answer")?;
        if let (Enqueued::Held(id), Some(key)) = (&answer, &key) {
            talk(format!("key `{key}` is held by unfinished job {id}; nothing was added"));
        }
        match args.wait {
            None => output::one(context.format(), &object(&answer), || answer.id().to_string()).map(|()| Code::Ok),
            Some(Wait(limit)) => {
                talk(answer.id());
                wait::await_end(&*store, answer.id(), limit).await
            }
        }
    })
}

/// The answer to one job, for programs.
fn object(answer: &Enqueued) -> serde_json::Value {
    serde_json::json!({ "id": answer.id().as_str(), "added": matches!(answer, Enqueued::Added(_)) })
}

/// Checks what was said about one job and makes it.
fn job(job_type: &str, payload: String, options: &Options, settings: &Settings) -> Result<NewJob, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let job_type = JobType::parse(job_type).map_err(|error| usage(&error))?;
    let rule = settings.worker.job_types.of(job_type.as_str());
    let payload = Payload::parse(payload, settings.worker.job_types.max_payload).map_err(|error| usage(&error))?;
    if options.max_attempts == Some(0) {
        return Err(Failure::usage("max attempts is 0: expected at least 1"));
    }
    let key = options.key.as_deref().map(Key::parse).transpose().map_err(|error| usage(&error))?;
    Ok(NewJob {
        priority: options.priority.unwrap_or(rule.priority),
        due: due(options)?,
        max_attempts: options.max_attempts,
        timeout: options.timeout.as_deref().map(|text| timeout(text, rule.max_timeout)).transpose()?,
        key,
        ..NewJob::new(job_type, payload)
    })
}

fn due(options: &Options) -> Result<Due, Failure> {
    match (&options.at, &options.delay) {
        (Some(_), Some(_)) => Err(Failure::usage("both `at` and `in` are given: expected one of them")),
        (Some(text), None) => parse::instant(text).map(Due::At),
        (None, Some(text)) => match parse::duration(text)? {
            delay if delay <= FARTHEST => Ok(Due::In(delay)),
            _ => Err(Failure::usage(format!("`{text}` is too far ahead: expected at most 1000 years"))),
        },
        (None, None) => Ok(Due::In(Duration::ZERO)),
    }
}

fn timeout(text: &str, max: Duration) -> Result<Duration, Failure> {
    let timeout = parse::duration(text)?;
    if timeout < Duration::from_millis(1) {
        return Err(Failure::usage(format!("timeout `{text}` is too short: expected at least 1ms")));
    }
    if timeout > max {
        let max = humantime::format_duration(max);
        let failure = Failure::usage(format!("timeout `{text}` is more than the {max} that `max_timeout` allows"));
        return Err(failure.hint("raise `max_timeout` of the type in jobq.toml, or ask for less"));
    }
    Ok(timeout)
}

/// A line of a bulk file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    r#type: String,
    /// `null` is a payload like any other; only a line without one has the default.
    #[serde(default, deserialize_with = "whatever_stands_there")]
    payload: Option<Box<RawValue>>,
    priority: Option<Priority>,
    at: Option<String>,
    r#in: Option<String>,
    max_attempts: Option<u32>,
    timeout: Option<String>,
    key: Option<String>,
}

fn whatever_stands_there<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(value).map(Some)
}

fn bulk(file: &Path, settings: &Settings, force: bool, context: &Context) -> anyhow::Result<Code> {
    let bytes = read_file(file)?;
    let known = known_types(settings);
    let (mut jobs, mut problems) = (Vec::new(), Vec::new());
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parse_line(line, settings, force, &known) {
            Ok(job) => jobs.push(job),
            Err(problem) => problems.push(format!("  line {}: {problem}", number + 1)),
        }
    }
    if !problems.is_empty() {
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        let message =
            format!("nothing was added, for `{}` has bad lines:\n{}{more}", file.display(), problems.join("\n"));
        return Err(Failure::usage(message)
            .hint("expected one JSON object a line, such as {\"type\": \"send_email\", \"payload\": {}}")
            .into());
    }
    let store = context.open(settings, OpenMode::Create)?;
    let answers = context.block_on(async { Ok(store.enqueue(jobs).await?) })?;
    let held = answers.iter().filter(|answer| matches!(answer, Enqueued::Held(_))).count();
    let objects: Vec<_> = answers.iter().map(object).collect();
    let ids = || answers.iter().map(|answer| answer.id().as_str()).collect::<Vec<_>>().join("\n");
    if !answers.is_empty() {
        output::many(context.format(), &objects, ids)?;
    }
    if held > 0 {
        talk(format!(
            "{held} of {} jobs not added: an unfinished job holds the key, and its id is printed",
            answers.len()
        ));
    }
    Ok(Code::Ok)
}

fn parse_line(line: &[u8], settings: &Settings, force: bool, known: &[String]) -> Result<NewJob, String> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err("it is not a JSON object".to_owned());
    }
    let line: Line =
        serde_json::from_slice(line).map_err(|error| error.to_string().replace(" at line 1 column", " at column"))?;
    let options = Options {
        priority: line.priority,
        at: line.at,
        delay: line.r#in,
        max_attempts: line.max_attempts,
        timeout: line.timeout,
        key: line.key,
    };
    let payload = line.payload.map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    let job = job(&line.r#type, payload, &options, settings).map_err(|failure| failure.in_one_line())?;
    if !force {
        require_known(&job.job_type, settings, known).map_err(|failure| failure.in_one_line())?;
    }
    Ok(job)
}
