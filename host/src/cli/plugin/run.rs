//! `jobq plugin run`: try a handler, on one payload or on a file of them.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::attempt::{self, Attempt, Setup};
use super::cases::{self, Case};
use super::subject::{self, Subject};
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure, tell};
use crate::cli::input::{read_file, read_payload};
use crate::cli::output::{self, Format, cell, talk};
use crate::cli::parse;
use crate::queue::Payload;
use crate::sandbox::Limits;

/// Characters of a result in the line of a case.
const SHOWN: usize = 100;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
It runs as the daemon would run it: by the limits and grants of its type in jobq.toml where there is one, but without \
queue, retries and follow-up jobs, which are only listed. The result goes to stdout, what the handler says to stderr. \
The exit code tells the outcome: 0 completed, 75 retry or snooze, 100 fatal, trap or limit, 5 not loadable.

A file that ends in .ndjson has a payload a line, and each must complete. A line {\"payload\": ..., \"expect\": ...} is \
a test case: expect is the result as JSON, or {\"outcome\": \"failed\", \"error\": \"part of the message\"} with any of \
outcome, error, result, fatal and after_ms; name and attempt may stand beside it. Exit code 1 says that one failed.

Examples:
  jobq plugin run ./resize.wasm '{\"n\": 2}'
  jobq plugin run plugins/send_email.wasm @request.json --attempt 3 -o json
  jobq plugin run resize.wasm @cases.ndjson";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    subject: subject::Which,
    /// JSON text, @FILE, - for standard input, or @FILE.ndjson for many [default: {}]
    #[arg(value_name = "JSON")]
    payload: Option<String>,
    /// Wall clock of an attempt [default: the type's]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
    /// The number of the attempt, as the handler sees it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
    /// Attempts before the job is dead, as the handler sees it [default: the type's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: Option<u32>,
}

fn timeout(text: &str) -> Result<Duration, Failure> {
    match parse::duration(text)? {
        limit if limit < Duration::from_millis(1) => Err(Failure::usage("expected at least 1ms")),
        limit => Ok(limit),
    }
}

/// What is to be run.
enum Work {
    One(Payload),
    Many(Vec<Case>),
}

pub(super) fn run(args: &Args, context: &Context) -> anyhow::Result<Code> {
    let subject = Subject::of(&args.subject, context)?.with_secrets(context)?;
    let work = read(args.payload.as_deref().unwrap_or("{}"), subject.settings.worker.job_types.max_payload)?;
    let sandbox = subject.sandbox()?;
    let version = subject.load(&sandbox, &subject.cache()).map_err(|error| subject.unloadable(&error))?;
    let limits = subject.rule.limits.clone();
    let setup = Setup {
        sandbox: &sandbox,
        version: &version,
        job_type: &subject.job_type,
        rules: Arc::new(subject.settings.worker.job_types.clone()),
        limits: Limits { timeout: args.timeout.unwrap_or(limits.timeout), ..limits },
        max_attempts: args.max_attempts,
    };
    match work {
        Work::One(payload) => context.block_on(one(&setup, &payload, args.attempt, context.format())),
        Work::Many(cases) => context.block_on(many(&setup, &cases, args.attempt, context.format())),
    }
}

fn read(argument: &str, max_payload: usize) -> Result<Work, Failure> {
    if let Some(file) = argument.strip_prefix('@').filter(|file| file.ends_with(".ndjson")) {
        return cases::parse(file, &read_file(file.as_ref())?, max_payload).map(Work::Many);
    }
    let text = read_payload(argument, max_payload)?;
    Payload::parse(text, max_payload).map(Work::One).map_err(|error| Failure::usage(error.to_string()))
}

async fn one(setup: &Setup<'_>, payload: &Payload, number: u32, format: Format) -> anyhow::Result<Code> {
    let attempt = setup.attempt(payload, number, |line| talk(attempt::line(line))).await?;
    match (format, &attempt.result) {
        (Format::Table, None) => {}
        (Format::Table, Some(result)) => output::print(result)?,
        (format, _) => output::one(format, &attempt, String::new)?,
    }
    if let Some(error) = &attempt.error {
        tell(error, None);
    }
    attempt.tell_follow_ups();
    let next = attempt.next().map_or(String::new(), |next| format!("; {next}"));
    talk(format!("{}{next}", attempt.summary()));
    Ok(attempt.code())
}

/// What became of a case, for programs.
#[derive(Debug, Serialize)]
struct Tried<'a> {
    line: usize,
    name: Option<&'a str>,
    passed: bool,
    /// How it differs from what was expected.
    difference: Option<String>,
    run: Attempt,
}

async fn many(setup: &Setup<'_>, cases: &[Case], number: u32, format: Format) -> anyhow::Result<Code> {
    let mut tried = Vec::new();
    for case in cases {
        let run = setup.attempt(&case.payload, case.attempt.unwrap_or(number), |_| {}).await?;
        if run.was_stopped() {
            talk(format!("stopped by Ctrl-C in line {}", case.line));
            return Ok(Code::Interrupted);
        }
        let difference = case.difference(&run);
        let name = case.name.as_deref();
        let one = Tried { line: case.line, name, passed: difference.is_none(), difference, run };
        match format {
            Format::Table => show(&one)?,
            Format::Ndjson => output::one(format, &one, String::new)?,
            Format::Json => {}
        }
        tried.push(one);
    }
    if format == Format::Json {
        output::many(format, &tried, String::new)?;
    }
    let failed = tried.iter().filter(|one| !one.passed).count();
    talk(format!("{} passed, {failed} failed", tried.len() - failed));
    Ok(if failed == 0 { Code::Ok } else { Code::Unexpected })
}

/// A case that passed is a line; one that failed is told with all that the handler said.
fn show(one: &Tried<'_>) -> anyhow::Result<()> {
    let word = if one.passed { "ok  " } else { "FAIL" };
    let name = one.name.map_or(String::new(), |name| format!(" {}", cell(name, SHOWN)));
    let result = one.run.result.as_deref().filter(|result| !result.is_empty());
    let result = result.map_or(String::new(), |result| format!(": {}", cell(result, SHOWN)));
    let (line, outcome, took) = (one.line, one.run.outcome.as_str(), one.run.took());
    output::print(&format!("{word} line {line}{name}: {outcome} after {took}{result}"))?;
    if let Some(difference) = &one.difference {
        difference.lines().try_for_each(|line| output::print(&format!("     {}", cell(line, usize::MAX))))?;
        one.run.tell_log("     ");
    }
    Ok(())
}
