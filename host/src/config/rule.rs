//! The keys that stand under `[defaults]` and under each `[jobs.NAME]`: what an attempt may use and what follows a failure.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::backoff;
use super::problem::Problem;
use super::section::Section;
use super::setting::{Setting, duration_text};
use super::suggest;
use crate::queue::{Outcome, Priority};
use crate::sandbox::Limits;
use crate::worker::JobTypeOptions;

/// The keys of `[defaults]`, each of which `[jobs.NAME]` has too.
pub(super) const KEYS: &[&str] = &[
    "timeout",
    "fuel",
    "memory",
    "priority",
    "max_timeout",
    "dead_on",
    "max_result",
    "max_log",
    "max_response",
    "max_attempts",
    "backoff",
];

const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(366 * 86_400);
/// From one page of WebAssembly to the whole of a 32-bit address space.
pub(super) const MEMORY: RangeInclusive<u64> = 64 << 10..=4 << 30;
pub(super) const MAX_BYTES: u64 = 512 << 20;

/// Reads the rule of one table; what it does not say stays as in `base`.
pub(super) fn read(section: &mut Section<'_, '_>, base: &JobTypeOptions) -> JobTypeOptions {
    let mut rule = base.clone();
    limits(section, &mut rule.limits);
    section.fill("priority", &mut rule.priority, priority);
    section.fill("max_timeout", &mut rule.max_timeout, |setting| setting.duration(TIMEOUT));
    section.fill("max_attempts", &mut rule.policy.max_attempts, max_attempts);
    if let Some(setting) = section.setting("dead_on") {
        rule.policy.dead_on = dead_on(&setting, section);
    }
    if let Some(setting) = section.setting("backoff") {
        rule.policy.backoff = backoff::read(&setting, section.findings);
    }
    timeout_within_max(section, &rule);
    rule
}

fn limits(section: &mut Section<'_, '_>, limits: &mut Limits) {
    section.fill("timeout", &mut limits.timeout, |setting| setting.duration(TIMEOUT));
    section.fill("fuel", &mut limits.fuel, fuel);
    section.fill("memory", &mut limits.memory, |setting| setting.size(MEMORY));
    section.fill("max_result", &mut limits.max_result, |setting| setting.size(1..=MAX_BYTES));
    section.fill("max_log", &mut limits.max_log, |setting| {
        setting.size(0..=MAX_BYTES).map_err(|problem| problem.cure("0 keeps no line"))
    });
    section.fill("max_response", &mut limits.max_response, |setting| setting.size(1..=MAX_BYTES));
}

fn fuel(setting: &Setting<'_>) -> Result<Option<u64>, Problem> {
    if setting.is_word("unlimited") {
        return Ok(None);
    }
    let fuel = setting.integer(1..=i64::MAX, "a number, or \"unlimited\"");
    let fuel = fuel.map_err(|problem| problem.cure("\"unlimited\" counts no fuel, so that only time stops a guest"))?;
    Ok(u64::try_from(fuel).ok())
}

fn priority(setting: &Setting<'_>) -> Result<Priority, Problem> {
    let range = i64::from(Priority::MIN)..=i64::from(Priority::MAX);
    let priority = setting.integer(range, "a whole number from -32768 to 32767")?;
    Ok(Priority::try_from(priority).unwrap_or_default())
}

fn max_attempts(setting: &Setting<'_>) -> Result<u32, Problem> {
    let number = setting.integer(1..=i64::from(i32::MAX), "a number of attempts");
    let number = number.map_err(|problem| problem.cure("1 runs a job once, without a retry"))?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn dead_on(setting: &Setting<'_>, section: &mut Section<'_, '_>) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    let items = setting.list("a list of outcomes, such as [\"out_of_fuel\"]");
    for value in &items.map_err(|problem| section.findings.problems.push(problem)).unwrap_or_default() {
        match outcome(&Setting { path: setting.path.clone(), value }) {
            Ok(outcome) => _ = outcomes.insert(outcome),
            Err(problem) => section.findings.problems.push(problem),
        }
    }
    outcomes
}

fn outcome(setting: &Setting<'_>) -> Result<Outcome, Problem> {
    let word = setting.text("the name of an outcome")?;
    let failures = || Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure()).map(Outcome::as_str);
    match Outcome::parse(word) {
        Some(outcome) if outcome.is_failure() => Ok(outcome),
        Some(_) => {
            let known = failures().collect::<Vec<_>>().join(", ");
            Err(setting.problem(&format!("names `{word}`, which is no failure"), format!("expected one of {known}")))
        }
        None => {
            let known = failures().collect::<Vec<_>>().join(", ");
            let problem = setting.problem("names no outcome", format!("expected one of {known}"));
            Err(match suggest::closest(word, failures()) {
                Some(near) => problem.cure(format!("did you mean \"{near}\"?")),
                None => problem,
            })
        }
    }
}

/// A timeout beyond `max_timeout` would be one that nobody may ask for.
fn timeout_within_max(section: &mut Section<'_, '_>, rule: &JobTypeOptions) {
    let (timeout, most) = (rule.limits.timeout, rule.max_timeout);
    let written = section.setting("timeout").or_else(|| section.setting("max_timeout"));
    if let Some(setting) = written.filter(|_| timeout > most) {
        let (timeout, most) = (duration_text(timeout), duration_text(most));
        let problem = setting
            .problem("does not fit", "expected timeout <= max_timeout")
            .cure(format!("timeout is {timeout}, max_timeout {most}: write both"));
        section.findings.problems.push(problem);
    }
}
