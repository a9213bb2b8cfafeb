//! `backoff`: the delay between attempts. A table that is given replaces the inherited one; what it leaves out is built in.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::problem::Findings;
use super::section::Section;
use super::setting::{Setting, duration_text};
use crate::queue::Backoff;

/// The keys of a backoff.
pub(super) const KEYS: &[&str] = &["base", "max", "jitter"];

const DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(366 * 86_400);

/// Reads a backoff.
pub(super) fn read(setting: &Setting<'_>, findings: &mut Findings) -> Backoff {
    let mut section = Section::open(setting.path.clone(), Some(setting.value), KEYS.to_vec(), findings);
    let mut backoff = Backoff::default();
    section.fill("base", &mut backoff.base, |setting| setting.duration(DELAY));
    section.fill("max", &mut backoff.max, |setting| setting.duration(DELAY));
    section.fill("jitter", &mut backoff.jitter, Setting::share);
    let written = section.setting("base").or_else(|| section.setting("max"));
    if let Some(setting) = written.filter(|_| backoff.base > backoff.max) {
        let (base, max) = (duration_text(backoff.base), duration_text(backoff.max));
        let problem = setting
            .problem("does not fit", "expected base <= max")
            .cure(format!("base is {base}, max {max}: write both"));
        section.findings.problems.push(problem);
    }
    backoff
}
