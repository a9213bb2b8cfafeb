//! `[worker]`: how much runs at once and how the daemon looks for work.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use super::problem::{Problem, shown};
use super::section::Section;
use super::setting::{Setting, duration_text};
use crate::queue::{JobType, Retention};
use crate::worker::{JobTypes, ServedTypes, WorkerOptions, auto_concurrency};

/// The keys of `[worker]`.
pub(super) const KEYS: &[&str] =
    &["concurrency", "types", "poll_interval", "max_poll_interval", "lease", "shutdown_grace"];

/// The most attempts at once: what the sandbox can find address space for.
pub(super) const MAX_CONCURRENCY: i64 = 10_000;

/// Reads `[worker]`; retention and rules come from other tables.
pub(super) fn read(section: &mut Section<'_, '_>, retention: Retention, job_types: JobTypes) -> WorkerOptions {
    let mut options = WorkerOptions { retention, job_types, ..WorkerOptions::default() };
    section.fill("concurrency", &mut options.concurrency, concurrency);
    if let Some(setting) = section.setting("types") {
        options.types = types(&setting, section);
    }
    intervals(section, &mut options);
    section.fill("lease", &mut options.lease, |setting| setting.duration(LEASE));
    section.fill("shutdown_grace", &mut options.shutdown_grace, |setting| {
        setting.duration(GRACE).map_err(|problem| problem.cure("\"0s\" stops running attempts at once"))
    });
    options
}

const LEASE: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);
const GRACE: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(86_400);
const INTERVAL: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

fn concurrency(setting: &Setting<'_>) -> Result<NonZeroU32, Problem> {
    if setting.is_word("auto") {
        return Ok(auto_concurrency());
    }
    let number = positive(setting, "a number of attempts, or \"auto\"");
    number.map_err(|problem| problem.cure("\"auto\" is 4 for each core"))
}

/// A number of attempts at once; none at all would mean a daemon that never works.
pub(super) fn positive(setting: &Setting<'_>, expected: &str) -> Result<NonZeroU32, Problem> {
    let number = setting.integer(1..=MAX_CONCURRENCY, expected)?;
    Ok(u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN))
}

fn types(setting: &Setting<'_>, section: &mut Section<'_, '_>) -> ServedTypes {
    if setting.is_word("all") {
        return ServedTypes::All;
    }
    let types = job_types(setting, "\"all\", or a list of job types", section);
    if types.as_ref().is_some_and(BTreeSet::is_empty) {
        let problem = setting.problem("is empty, so that no job would run", "expected \"all\", or a list of job types");
        section.findings.problems.push(problem);
    }
    types.map_or(ServedTypes::All, ServedTypes::Only)
}

/// A list of job types; `None` where it is no list. Names that no type can have are problems.
pub(super) fn job_types(
    setting: &Setting<'_>,
    expected: &str,
    section: &mut Section<'_, '_>,
) -> Option<BTreeSet<JobType>> {
    let items = setting.list(expected).map_err(|problem| section.findings.problems.push(problem)).ok()?;
    let mut types = BTreeSet::new();
    for value in &items {
        match job_type(&Setting { path: setting.path.clone(), value }) {
            Ok(job_type) => _ = types.insert(job_type),
            Err(problem) => section.findings.problems.push(problem),
        }
    }
    Some(types)
}

fn job_type(setting: &Setting<'_>) -> Result<JobType, Problem> {
    let name = setting.text("the name of a job type")?;
    JobType::parse(name)
        .map_err(|_| setting.problem(&format!("names `{}`, which is no job type", shown(name)), JobType::EXPECTED))
}

fn intervals(section: &mut Section<'_, '_>, options: &mut WorkerOptions) {
    section.fill("poll_interval", &mut options.poll_interval, |setting| setting.duration(INTERVAL));
    section.fill("max_poll_interval", &mut options.max_poll_interval, |setting| setting.duration(INTERVAL));
    let written = section.setting("max_poll_interval").or_else(|| section.setting("poll_interval"));
    if let Some(setting) = written.filter(|_| options.max_poll_interval < options.poll_interval) {
        let (least, most) = (options.poll_interval, options.max_poll_interval);
        let problem = setting.problem("does not fit", "expected poll_interval <= max_poll_interval").cure(format!(
            "poll_interval is {}, max_poll_interval {}: write both",
            duration_text(least),
            duration_text(most)
        ));
        section.findings.problems.push(problem);
    }
}
