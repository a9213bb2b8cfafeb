//! The JSON Schema of `jobq.toml`, for editors, and the list of its keys. Both come from the declarations of the keys.
//!
//! Descriptions, defaults and examples come from the `jobq.toml` at the root, which documents every key. The check is stricter
//! than a schema can be: it knows how two keys fit together, and how long a duration is.

use serde_json::{Map, Value, json};

use super::check::{DeclaredTable, declared};
use super::section::{DeclaredKey, table_schema};
use crate::queue::JobType;

/// The settings file that documents every key.
const DOCUMENT: &str = include_str!("../../../jobq.toml");

/// The schema, in JSON Schema 2020-12.
pub fn schema() -> Value {
    let document = Document::read();
    let mut properties = Map::new();
    for DeclaredTable { name, keys } in declared() {
        let described = |key: DeclaredKey| DeclaredKey { schema: document.described(name, &key), ..key };
        let table = table_schema(&keys.into_iter().map(described).collect::<Vec<_>>());
        let schema = if name == "jobs" { by_job_type(&table) } else { table };
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "jobq.toml",
        "description": "The settings of jobq. `jobq check` reports every problem, and more of them than this schema can.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn by_job_type(table: &Value) -> Value {
    json!({
        "description": "Job types by name: the settings of each, and what it is granted.",
        "type": "object",
        "patternProperties": { JobType::PATTERN: table },
        "additionalProperties": false,
    })
}

/// Every key, such as `queue.database`, `defaults.backoff.base` or `jobs.NAME.plugin`. A `[jobs.NAME]` can have those of `[defaults]` too.
pub fn keys() -> Vec<String> {
    let declared = declared();
    let defaults = declared.iter().find(|table| table.name == "defaults").map_or(&[][..], |table| &table.keys);
    let mut keys = Vec::new();
    for table in &declared {
        let is_inherited =
            |key: &DeclaredKey| table.name == "jobs" && defaults.iter().any(|other| other.name == key.name);
        let prefix = if table.name == "jobs" { "jobs.NAME" } else { table.name };
        for key in table.keys.iter().filter(|key| !is_inherited(key)) {
            add_keys(format!("{prefix}.{}", key.name), &key.schema, &mut keys);
        }
    }
    keys
}

/// Adds a key, and those of its inline table.
fn add_keys(key: String, schema: &Value, keys: &mut Vec<String>) {
    let properties = ["/properties", "/items/properties"].iter().find_map(|path| schema.pointer(path)?.as_object());
    let inner = properties.into_iter().flatten();
    let inner: Vec<_> = inner.map(|(name, schema)| (format!("{key}.{name}"), schema)).collect();
    keys.push(key);
    inner.into_iter().for_each(|(key, schema)| add_keys(key, schema, keys));
}

/// The keys of the documented settings file, including those that are commented out.
struct Document {
    entries: Vec<Documented>,
}

struct Documented {
    section: String,
    key: String,
    /// The comment above the key.
    description: String,
    value: Option<Value>,
}

impl Document {
    fn read() -> Self {
        let (mut entries, mut section, mut description) = (Vec::new(), String::new(), Vec::new());
        for line in DOCUMENT.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                description.push(comment);
                continue;
            }
            let written = line.strip_prefix('#').unwrap_or(line);
            if let Some(name) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, value)) = written.split_once(" = ") {
                let (section, key, description) = (section.clone(), key.to_owned(), description.join(" "));
                entries.push(Documented { section, key, description, value: json_of(value) });
            }
            description.clear();
        }
        Self { entries }
    }

    /// The schema of a key with its description, and its default or an example.
    fn described(&self, table: &str, key: &DeclaredKey) -> Value {
        let mut schema = key.schema.clone();
        let own = if table == "jobs" { self.example_of_a_type() } else { Some(table) };
        let find = |section: Option<&str>| {
            self.entries.iter().find(|entry| Some(&*entry.section) == section && entry.key == key.name)
        };
        if let Some(entry) = find(own) {
            schema["description"] = json!(entry.description);
            if let Some(value) = &entry.value {
                let (name, value) =
                    if table == "jobs" { ("examples", json!([value])) } else { ("default", value.clone()) };
                schema[name] = value;
            }
        } else if let Some(entry) = find(Some("defaults")).filter(|_| table == "jobs") {
            schema["description"] = json!(entry.description);
        }
        schema
    }

    /// The table that documents the keys of a `[jobs.NAME]`: the one with `plugin`.
    fn example_of_a_type(&self) -> Option<&str> {
        let example = self.entries.iter().find(|entry| entry.section.starts_with("jobs.") && entry.key == "plugin")?;
        Some(&example.section)
    }
}

/// A TOML value as JSON.
fn json_of(value: &str) -> Option<Value> {
    let parsed: toml::Table = toml::from_str(&format!("value = {value}")).ok()?;
    serde_json::to_value(parsed.get("value")?).ok()
}
