//! The JSON Schema of `jobq.toml`, for editors that know TOML.
//!
//! What a key means, its default and its example are read from the `jobq.toml` at the root, which documents every key;
//! what it may be stands here, by the bounds of the code that reads it. The check knows more than a schema can say: how two
//! keys fit together, and how long a duration is.

use serde_json::{Map, Value, json};

use super::check::SECTIONS;
use super::{backoff, grants, jobs, queue, rule, worker};
use crate::queue::{JobType, Outcome, Priority};

/// The settings file that documents itself.
const DOCUMENT: &str = include_str!("../../../jobq.toml");

/// Durations as humantime reads them, such as `1h 30m`.
const DURATION: &str = r"^\s*(0|([0-9]+(\.[0-9]+)?\s*[A-Za-zµ]+\s*)+)\s*$";
/// Sizes as bytesize reads them, such as `1.5 MiB`.
const SIZE: &str = r"^\s*[0-9][0-9.]*\s*([KMGTPEkmgtpe][iI]?)?[bB]?\s*$";
const JOB_TYPE: &str = JobType::PATTERN;

/// The schema, in JSON Schema 2020-12.
pub fn schema() -> Value {
    let document = Document::read();
    let mut properties = Map::new();
    for (section, keys) in SECTIONS.iter().filter(|(section, _)| *section != "jobs") {
        let entries = keys.iter().map(|key| ((*key).to_owned(), document.described(section, key, section)));
        properties.insert((*section).to_owned(), table(entries.collect()));
    }
    let inherited = rule::KEYS.iter().map(|key| ((*key).to_owned(), document.described("defaults", key, "jobs")));
    let own = jobs::KEYS.iter().map(|key| ((*key).to_owned(), document.described("jobs", key, "jobs")));
    properties.insert(
        "jobs".to_owned(),
        json!({
            "description": "Job types by name: what holds for one of them alone, and what it is granted.",
            "type": "object",
            "patternProperties": { JOB_TYPE: table(own.chain(inherited).collect()) },
            "additionalProperties": false,
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "jobq.toml",
        "description": "The settings of jobq. `jobq check` tells every mistake, and more of them than this schema can.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn table(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// What a key may be.
fn shape(section: &str, key: &str) -> Value {
    match (section, key) {
        ("queue", "table") => json!({ "type": "string", "pattern": "^(?!.*__)[A-Za-z_][A-Za-z0-9_]{0,47}$" }),
        ("queue", "durability") => json!({ "enum": ["full", "normal"] }),
        ("queue", "max_payload") => size(1, queue::MAX_PAYLOAD),
        ("worker", "concurrency") => json!({ "oneOf": [{ "const": "auto" }, integer(1, worker::MAX_CONCURRENCY)] }),
        ("worker", "types") => {
            json!({ "oneOf": [{ "const": "all" }, { "minItems": 1, "type": "array", "items": job_type() }] })
        }
        ("server", "listen") => json!({ "enum": ["off"] }),
        ("retention", _) => json!({ "oneOf": [{ "const": "off" }, duration()] }),
        ("worker", _) | ("defaults", "timeout" | "max_timeout") => duration(),
        ("defaults", "fuel") => json!({ "oneOf": [{ "const": "unlimited" }, { "type": "integer", "minimum": 1 }] }),
        ("defaults", "memory") => size(*rule::MEMORY.start(), *rule::MEMORY.end()),
        ("defaults", "max_result" | "max_response") => size(1, rule::MAX_BYTES),
        ("defaults", "max_log") => size(0, rule::MAX_BYTES),
        ("defaults", "priority") => integer(Priority::MIN.into(), Priority::MAX.into()),
        ("defaults", "max_attempts") => integer(1, i32::MAX.into()),
        ("defaults", "dead_on") => json!({ "type": "array", "items": { "enum": failures() } }),
        ("defaults", "backoff") => {
            table(backoff::KEYS.iter().map(|key| ((*key).to_owned(), of_backoff(key))).collect())
        }
        ("jobs", "plugin") => json!({ "type": "string", "pattern": r"^[^/\\]+\.wasm$" }),
        ("jobs", "concurrency") => integer(1, worker::MAX_CONCURRENCY),
        ("jobs", "env") => json!({
            "type": "object",
            "propertyNames": { "pattern": "^(?!JOBQ_)[^=]+$" },
            "additionalProperties": { "type": "string" },
        }),
        ("jobs", "secrets") => json!({
            "type": "object",
            "propertyNames": { "pattern": "^(?!JOBQ_)[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": { "oneOf": [of_secret("env"), of_secret("file")] },
        }),
        ("jobs", "dirs") => {
            let mut one = table(grants::DIR_KEYS.iter().map(|key| ((*key).to_owned(), of_dir(key))).collect());
            one["required"] = json!(["host", "guest"]);
            json!({ "type": "array", "items": one })
        }
        ("jobs", "http") => json!({ "type": "array", "items": { "type": "string", "pattern": "^https?://[^/?#@]+$" } }),
        ("jobs", "enqueue") => json!({ "type": "array", "items": job_type() }),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

fn of_backoff(key: &str) -> Value {
    let (description, mut shape) = match key {
        "base" => ("The delay before the second attempt.", duration()),
        "max" => ("The longest delay.", duration()),
        _ => (
            "The share by which a delay may be shorter or longer.",
            json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        ),
    };
    shape["description"] = json!(description);
    shape
}

fn of_dir(key: &str) -> Value {
    let (description, mut shape) = match key {
        "host" => ("The directory here.", json!({ "type": "string", "minLength": 1 })),
        "guest" => ("Where the handler sees it.", json!({ "type": "string", "pattern": "^/" })),
        _ => ("Whether the handler may write there.", json!({ "type": "boolean", "default": false })),
    };
    shape["description"] = json!(description);
    shape
}

/// Where a secret is to be found.
fn of_secret(key: &str) -> Value {
    json!({
        "type": "object",
        "properties": { key: { "type": "string", "minLength": 1 } },
        "required": [key],
        "additionalProperties": false,
    })
}

fn integer(minimum: i64, maximum: i64) -> Value {
    json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
}

fn size(minimum: u64, maximum: u64) -> Value {
    json!({ "oneOf": [
        { "type": "string", "pattern": SIZE },
        { "type": "integer", "minimum": minimum, "maximum": maximum },
    ] })
}

fn duration() -> Value {
    json!({ "type": "string", "pattern": DURATION })
}

fn job_type() -> Value {
    json!({ "type": "string", "pattern": JOB_TYPE })
}

fn failures() -> Vec<&'static str> {
    Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure()).map(Outcome::as_str).collect()
}

/// The keys of the settings file that documents itself, those that stand behind a `#` included.
struct Document {
    entries: Vec<Documented>,
}

struct Documented {
    section: String,
    key: String,
    /// The comment above.
    meaning: String,
    value: Option<Value>,
}

impl Document {
    fn read() -> Self {
        let (mut entries, mut section, mut meaning) = (Vec::new(), String::new(), Vec::new());
        for line in DOCUMENT.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                meaning.push(comment);
                continue;
            }
            let written = line.strip_prefix('#').unwrap_or(line);
            if let Some(name) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, value)) = written.split_once(" = ") {
                let (section, key, meaning) = (section.clone(), key.to_owned(), meaning.join(" "));
                entries.push(Documented { section, key, meaning, value: json_of(value) });
            }
            meaning.clear();
        }
        Self { entries }
    }

    /// The shape of a key of `section` with its meaning; where it stands under `table`, its default or an example.
    fn described(&self, section: &str, key: &str, table: &str) -> Value {
        let mut shape = shape(section, key);
        let Some(entry) = self.find(section, key) else { return shape };
        shape["description"] = json!(entry.meaning);
        match &entry.value {
            Some(value) if section == "jobs" => shape["examples"] = json!([value]),
            Some(value) if section == table => shape["default"] = value.clone(),
            _ => {}
        }
        shape
    }

    /// The keys of `[jobs.NAME]` are explained in the one table that has all of them.
    fn find(&self, section: &str, key: &str) -> Option<&Documented> {
        let is = |entry: &&Documented, section: &str, key: &str| entry.section == section && entry.key == key;
        if section != "jobs" {
            return self.entries.iter().find(|entry| is(entry, section, key));
        }
        let example =
            self.entries.iter().find(|entry| entry.section.starts_with("jobs.") && entry.key == jobs::KEYS[0])?;
        self.entries.iter().find(|entry| is(entry, &example.section, key))
    }
}

/// A value of TOML as JSON.
fn json_of(value: &str) -> Option<Value> {
    let parsed: toml::Table = toml::from_str(&format!("value = {value}")).ok()?;
    serde_json::to_value(parsed.get("value")?).ok()
}
