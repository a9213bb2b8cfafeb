//! The tables that hold for the whole daemon: `[queue]`, `[worker]`, `[plugins]`, `[server]` and `[retention]`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::kind::{self, Kind, concurrency, duration, job_type, list, size, word};
use super::section::Section;
use super::setting::Setting;
use super::settings::Queue;
use crate::queue::{Durability, Retention, TableName};
use crate::worker::{ServedTypes, WorkerOptions, auto_concurrency};

const DAY: Duration = Duration::from_secs(86_400);
const LEASE: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;
const GRACE: RangeInclusive<Duration> = Duration::ZERO..=DAY;
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
const AGE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(36_525 * 86_400);

/// SQLite takes no value of 1 GB or more.
const MAX_PAYLOAD: u64 = 512 << 20;

/// Reads `[queue]`: where the jobs are kept.
pub(super) fn queue(section: &mut Section<'_, '_>, base: &Path) -> Queue {
    let mut queue = Queue {
        database: base.join("jobq.db"),
        table: TableName::default(),
        durability: Durability::Full,
        max_payload: 1 << 20,
    };
    section.key("database", database(base), &mut queue.database);
    section.key("table", table_name(), &mut queue.table);
    let durability = word(&[("full", Durability::Full), ("normal", Durability::Normal)]);
    section.key("durability", durability, &mut queue.durability);
    section.key("max_payload", size(1..=MAX_PAYLOAD), &mut queue.max_payload);
    queue
}

fn database(base: &Path) -> Kind<'_, PathBuf> {
    let expected = "the path of a SQLite file, such as \"jobq.db\"";
    let path = kind::path(expected, base);
    Kind::with_findings(path.schema().clone(), move |setting, findings| {
        let text = findings.take(setting.text(expected))?;
        let (what, help) = match text {
            _ if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                ("names a PostgreSQL server", "this version keeps its queue only in SQLite")
            }
            _ if text.contains("://") || text.starts_with("file:") => ("is a URL", "write only the path"),
            ":memory:" => ("is not a file", "a queue in memory could not be shared, and would not survive the process"),
            _ => return path.read(setting, findings),
        };
        findings.problems.push(setting.problem(what, format!("expected {expected}")).with_help(help));
        None
    })
}

fn table_name<'k>() -> Kind<'k, TableName> {
    let read = |setting: &Setting<'_>| {
        let name = setting.text("the name of a table")?;
        TableName::parse(name).map_err(|_| {
            setting
                .problem("is not a table name", "expected 1 to 48 of the characters A-Z a-z 0-9 _")
                .with_help("it must not begin with a digit or sqlite_, contain __, or be jobq_queues")
        })
    };
    Kind::new(json!({ "type": "string", "pattern": "^(?!.*__)[A-Za-z_][A-Za-z0-9_]{0,47}$" }), read)
}

/// Reads `[worker]`: how much runs at once, and how the daemon looks for work.
pub(super) fn worker(section: &mut Section<'_, '_>, options: &mut WorkerOptions) {
    let slots = concurrency("a number of attempts, or \"auto\"").or_word("auto", auto_concurrency());
    section.key("concurrency", slots.help("\"auto\" is 4 for each core"), &mut options.concurrency);
    section.key("types", served_types(), &mut options.types);
    let (least, most) = (&mut options.poll_interval, &mut options.max_poll_interval);
    section.key("poll_interval", duration(INTERVAL, *least), least);
    section.key("max_poll_interval", duration(INTERVAL, *most), most);
    section.in_order(("poll_interval", *least), ("max_poll_interval", *most));
    section.key("lease", duration(LEASE, options.lease), &mut options.lease);
    let grace = duration(GRACE, options.shutdown_grace).help("\"0s\" stops running attempts at once");
    section.key("shutdown_grace", grace, &mut options.shutdown_grace);
}

fn served_types<'k>() -> Kind<'k, ServedTypes> {
    let types = list("\"all\", or a list of job types", job_type());
    let mut schema = types.schema().clone();
    schema["minItems"] = json!(1);
    let types = Kind::with_findings(schema, move |setting, findings| {
        let before = findings.problems.len();
        let types = types.read(setting, findings)?;
        if types.is_empty() && findings.problems.len() == before {
            let expected = "expected \"all\", or a list of job types";
            findings.problems.push(setting.problem("is empty, so no job would run", expected));
        }
        Some(ServedTypes::Only(types.into_iter().collect()))
    });
    types.or_word("all", ServedTypes::All)
}

/// Reads `[plugins]`: the directory of the handlers, and the one of their compiled code.
pub(super) fn plugins(section: &mut Section<'_, '_>, base: &Path) -> (PathBuf, PathBuf) {
    let (mut dir, mut cache_dir) = (base.join("plugins"), base.join(".jobq/cache"));
    section.key("dir", kind::path("the path of a directory, such as \"plugins\"", base), &mut dir);
    section.key("cache_dir", kind::path("the path of a directory, such as \".jobq/cache\"", base), &mut cache_dir);
    (dir, cache_dir)
}

/// Reads `[server]`. Anything but "off" would have no effect in this version, so it is refused.
pub(super) fn server(section: &mut Section<'_, '_>) {
    section.key("listen", word(&[("off", ())]).help("this version does not serve HTTP"), &mut ());
}

/// Reads `[retention]`: how long finished jobs are kept.
pub(super) fn retention(section: &mut Section<'_, '_>) -> Retention {
    let mut retention = Retention { completed: Some(DAY * 7), cancelled: Some(DAY * 7), dead: Some(DAY * 30) };
    section.key("completed", age(), &mut retention.completed);
    section.key("cancelled", age(), &mut retention.cancelled);
    section.key("dead", age(), &mut retention.dead);
    retention
}

fn age<'k>() -> Kind<'k, Option<Duration>> {
    duration(AGE, DAY).map(Some).or_word("off", None).help("\"off\" keeps them forever")
}
