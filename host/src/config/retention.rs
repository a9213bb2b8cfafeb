//! `[retention]`: how long finished jobs are kept.

use std::time::Duration;

use super::problem::Problem;
use super::section::Section;
use super::setting::Setting;
use crate::queue::Retention;

/// The keys of `[retention]`.
pub(super) const KEYS: &[&str] = &["completed", "cancelled", "dead"];

const DAY: Duration = Duration::from_secs(86_400);

/// Reads `[retention]`.
pub(super) fn read(section: &mut Section<'_, '_>) -> Retention {
    let mut retention = Retention { completed: Some(DAY * 7), cancelled: Some(DAY * 7), dead: Some(DAY * 30) };
    section.fill("completed", &mut retention.completed, age);
    section.fill("cancelled", &mut retention.cancelled, age);
    section.fill("dead", &mut retention.dead, age);
    retention
}

fn age(setting: &Setting<'_>) -> Result<Option<Duration>, Problem> {
    if setting.is_word("off") {
        return Ok(None);
    }
    let age = setting.duration(Duration::from_secs(1)..=DAY * 36_525);
    age.map(Some).map_err(|problem| problem.cure("\"off\" keeps them for ever, \"1s\" next to not at all"))
}
