//! `jobq plugin run`: try a handler on one payload or on a file of payloads.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::attempt::{self, Attempt, Setup};
use super::cases::{self, Case};
use super::plugin_file::{FileArgs, PluginFile};
use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure, report_error};
use crate::cli::input::{read_file, read_payload};
use crate::cli::output::{self, Format, cell, talk};
use crate::cli::parse;
use crate::queue::Payload;
use crate::sandbox::Limits;

/// Characters of a result in the line of a case.
const SHOWN: usize = 100;

/// Examples for `--help`.
pub(super) const HELP: &str = "\
The plugin runs as in the daemon, with the limits and grants of its type in jobq.toml, but without a queue and without \
retries. Follow-up jobs are listed, not enqueued. The result goes to stdout, the handler's log to stderr. \
The exit code is the outcome: 0 completed, 75 retry or snooze, 100 fatal, trap or limit, 5 not loadable.

A file that ends in .ndjson has one payload per line, and each must complete. A line {\"payload\": ..., \"expect\": ...} \
is a test case: expect is the result as JSON, or {\"outcome\": \"failed\", \"error\": \"part of the message\"} with any \
of outcome, error, result, fatal and after_ms. It may also have a name and an attempt. Exit code 1 means that a case failed.

Examples:
  jobq plugin run ./resize.wasm '{\"n\": 2}'
  jobq plugin run plugins/send_email.wasm @request.json --attempt 3 -o json
  jobq plugin run resize.wasm @cases.ndjson";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    file: FileArgs,
    /// JSON text, @FILE, - for standard input, or @FILE.ndjson for many [default: {}]
    #[arg(value_name = "JSON")]
    payload: Option<String>,
    /// Time limit of an attempt [default: that of the type]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
    /// The number of the attempt, as the handler sees it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
    /// The maximum number of attempts, as the handler sees it [default: that of the type]
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
    let file = PluginFile::of(&args.file, context)?.with_secrets(context)?;
    let work = read(args.payload.as_deref().unwrap_or("{}"), file.settings.worker.job_types.max_payload)?;
    let sandbox = file.sandbox()?;
    let version = file.load(&sandbox, &file.cache()).map_err(|error| file.load_failure(&error))?;
    let limits = file.rule.limits.clone();
    let setup = Setup {
        sandbox: &sandbox,
        version: &version,
        job_type: &file.job_type,
        rules: Arc::new(file.settings.worker.job_types.clone()),
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
        report_error(error, None);
    }
    attempt.print_follow_ups();
    let next = attempt.next().map_or(String::new(), |next| format!("; {next}"));
    talk(format!("{}{next}", attempt.summary()));
    Ok(attempt.code())
}

/// The result of a case, for programs.
#[derive(Debug, Serialize)]
struct CaseResult<'a> {
    line: usize,
    name: Option<&'a str>,
    passed: bool,
    /// The difference from the expectation.
    difference: Option<String>,
    run: Attempt,
}

async fn many(setup: &Setup<'_>, cases: &[Case], number: u32, format: Format) -> anyhow::Result<Code> {
    let mut results = Vec::new();
    for case in cases {
        let run = setup.attempt(&case.payload, case.attempt.unwrap_or(number), |_| {}).await?;
        if run.was_stopped() {
            talk(format!("stopped by Ctrl-C in line {}", case.line));
            return Ok(Code::Interrupted);
        }
        let difference = case.difference(&run);
        let name = case.name.as_deref();
        let result = CaseResult { line: case.line, name, passed: difference.is_none(), difference, run };
        match format {
            Format::Table => show(&result)?,
            Format::Ndjson => output::one(format, &result, String::new)?,
            Format::Json => {}
        }
        results.push(result);
    }
    if format == Format::Json {
        output::many(format, &results, String::new)?;
    }
    let failed = results.iter().filter(|result| !result.passed).count();
    talk(format!("{} passed, {failed} failed", results.len() - failed));
    Ok(if failed == 0 { Code::Ok } else { Code::Unexpected })
}

/// Prints one line for a case that passed; for one that failed, also the difference and the handler's log.
fn show(case: &CaseResult<'_>) -> anyhow::Result<()> {
    let word = if case.passed { "ok  " } else { "FAIL" };
    let name = case.name.map_or(String::new(), |name| format!(" {}", cell(name, SHOWN)));
    let result = case.run.result.as_deref().filter(|result| !result.is_empty());
    let result = result.map_or(String::new(), |result| format!(": {}", cell(result, SHOWN)));
    let (line, outcome, took) = (case.line, case.run.outcome.as_str(), case.run.took());
    output::print(&format!("{word} line {line}{name}: {outcome} after {took}{result}"))?;
    if let Some(difference) = &case.difference {
        difference.lines().try_for_each(|line| output::print(&format!("     {}", cell(line, usize::MAX))))?;
        case.run.print_log("     ");
    }
    Ok(())
}
