//! `[queue]`: where the jobs are kept.

use std::path::{Path, PathBuf};

use super::path::path;
use super::problem::Problem;
use super::section::Section;
use super::setting::Setting;
use super::settings::Queue;
use crate::queue::{Durability, TableName};

/// The keys of `[queue]`.
pub(super) const KEYS: &[&str] = &["database", "table", "durability", "max_payload"];

/// The most that [`Queue::max_payload`] may be: SQLite takes no value of 1 GB or more.
pub(super) const MAX_PAYLOAD: u64 = 512 << 20;

/// Reads `[queue]`.
pub(super) fn read(section: &mut Section<'_, '_>, base: &Path) -> Queue {
    let mut queue = Queue {
        database: base.join("jobq.db"),
        table: TableName::default(),
        durability: Durability::Full,
        max_payload: 1 << 20,
    };
    section.fill("database", &mut queue.database, |setting| database(setting, base));
    section.fill("table", &mut queue.table, table);
    section.fill("durability", &mut queue.durability, |setting| {
        setting.word(&[("full", Durability::Full), ("normal", Durability::Normal)])
    });
    section.fill("max_payload", &mut queue.max_payload, |setting| setting.size(1..=MAX_PAYLOAD));
    queue
}

fn database(setting: &Setting<'_>, base: &Path) -> Result<PathBuf, Problem> {
    let expected = "the path of a SQLite file, such as \"jobq.db\"";
    let text = setting.text(expected)?;
    let expected = format!("expected {expected}");
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Err(setting
            .problem("names a PostgreSQL server", expected)
            .cure("this version keeps its queue in SQLite only"));
    }
    if text.contains("://") || text.starts_with("file:") {
        return Err(setting.problem("is a URL", expected).cure("write the path alone"));
    }
    if text == ":memory:" {
        return Err(setting.problem("is no file", expected).cure("a queue in memory could not be shared, nor survive"));
    }
    path(setting, "the path of a SQLite file, such as \"jobq.db\"", base)
}

fn table(setting: &Setting<'_>) -> Result<TableName, Problem> {
    let name = setting.text("the name of a table")?;
    TableName::parse(name).map_err(|_| {
        setting
            .problem("is not the name of a table", "expected 1 to 48 of the characters A-Z a-z 0-9 _")
            .cure("no digit in front, no __, not beginning with sqlite_, and not jobq_queues")
    })
}
