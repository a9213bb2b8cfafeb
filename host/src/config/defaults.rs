//! The keys of `[defaults]` and of each `[jobs.NAME]`: what an attempt may use, and what follows a failure.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::json;

use super::kind::{Kind, duration, fraction, integer, list, size};
use super::problem::{Problem, shown};
use super::section::{self, Section};
use super::setting::Setting;
use super::suggest;
use crate::queue::{Backoff, Outcome, Priority};
use crate::worker::JobTypeOptions;

const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(366 * 86_400);
const DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(366 * 86_400);
/// From one page of WebAssembly to a whole 32-bit address space.
const MEMORY: RangeInclusive<u64> = 64 << 10..=4 << 30;
const MAX_BYTES: u64 = 512 << 20;

/// Reads the options of one table; a key that is absent keeps its value of `base`.
pub(super) fn read(section: &mut Section<'_, '_>, base: &JobTypeOptions) -> JobTypeOptions {
    let mut options = base.clone();
    let (limits, policy) = (&mut options.limits, &mut options.policy);
    section.key("timeout", duration(TIMEOUT, limits.timeout), &mut limits.timeout);
    section.key("fuel", fuel(), &mut limits.fuel);
    section.key("memory", size(MEMORY), &mut limits.memory);
    section.key("priority", priority(), &mut options.priority);
    section.key("max_timeout", duration(TIMEOUT, options.max_timeout), &mut options.max_timeout);
    section.in_order(("timeout", limits.timeout), ("max_timeout", options.max_timeout));
    let dead_on = list("a list of outcomes, such as [\"out_of_fuel\"]", failure());
    section.key("dead_on", dead_on.map(|outcomes| outcomes.into_iter().collect()), &mut policy.dead_on);
    section.key("max_result", size(1..=MAX_BYTES), &mut limits.max_result);
    section.key("max_log", size(0..=MAX_BYTES).help("0 keeps no line"), &mut limits.max_log);
    section.key("max_response", size(1..=MAX_BYTES), &mut limits.max_response);
    section.key("max_attempts", max_attempts(), &mut policy.max_attempts);
    section.key("backoff", backoff(), &mut policy.backoff);
    options
}

fn fuel<'k>() -> Kind<'k, Option<u64>> {
    let fuel = integer(1..=i64::MAX, "a number, or \"unlimited\"").map(|fuel| u64::try_from(fuel).ok());
    fuel.or_word("unlimited", None).help("\"unlimited\" counts no fuel, so only the timeout stops a guest")
}

fn priority<'k>() -> Kind<'k, Priority> {
    let range = i64::from(Priority::MIN)..=i64::from(Priority::MAX);
    let priority = integer(range, "a whole number from -32768 to 32767");
    priority.map(|priority| Priority::try_from(priority).unwrap_or_default())
}

fn max_attempts<'k>() -> Kind<'k, u32> {
    let number = integer(1..=i64::from(i32::MAX), "a number of attempts").help("1 runs a job once, without a retry");
    number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// An outcome that is a failure.
fn failure<'k>() -> Kind<'k, Outcome> {
    let failures = || Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure()).map(Outcome::as_str);
    let read = move |setting: &Setting<'_>| -> Result<Outcome, Problem> {
        let word = setting.text("the name of an outcome")?;
        let expected = || format!("expected one of {}", failures().collect::<Vec<_>>().join(", "));
        match Outcome::parse(word) {
            Some(outcome) if outcome.is_failure() => Ok(outcome),
            Some(_) => Err(setting.problem(&format!("names `{}`, which is not a failure", shown(word)), expected())),
            None => {
                let problem = setting.problem(&format!("names `{}`, which is not an outcome", shown(word)), expected());
                Err(match suggest::closest(word, failures()) {
                    Some(near) => problem.with_help(format!("did you mean \"{near}\"?")),
                    None => problem,
                })
            }
        }
    };
    Kind::new(json!({ "enum": failures().collect::<Vec<_>>() }), read)
}

/// The delay between attempts. A table replaces the inherited one; keys that it leaves out have the built-in defaults.
fn backoff<'k>() -> Kind<'k, Backoff> {
    section::table(|section, backoff: &mut Backoff| {
        let base = duration(DELAY, backoff.base).doc("The delay before the second attempt.");
        section.key("base", base, &mut backoff.base);
        section.key("max", duration(DELAY, backoff.max).doc("The longest delay."), &mut backoff.max);
        let jitter = fraction().doc("The share by which a delay may be shorter or longer.");
        section.key("jitter", jitter, &mut backoff.jitter);
        section.in_order(("base", backoff.base), ("max", backoff.max));
    })
}
