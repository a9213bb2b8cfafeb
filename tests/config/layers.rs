//! Precedence: defaults < file < environment. Every key has an effect.

use std::path::{Path, PathBuf};

use jobq::config::{check, keys, schema};
use serde_json::{Value, json};

use super::{check_text, environment};

const FILE: &str = "[queue]\ndatabase = 'file.db'\n[worker]\nconcurrency = 3\n";

#[test]
fn each_layer_overrides_the_one_below() {
    let variables = [("JOBQ_WORKER__CONCURRENCY", "5"), ("JOBQ_QUEUE__DATABASE", "variable.db")];
    let read = |text, variables: &[_]| {
        let settings = check(text, "jobq.toml", Path::new("conf"), &environment(variables)).unwrap();
        (settings.worker.concurrency.get(), settings.queue.database)
    };
    assert_eq!(read("", &[]).1, PathBuf::from("conf/jobq.db"));
    assert_eq!(read(FILE, &[]), (3, "conf/file.db".into()));
    assert_eq!(read(FILE, &variables), (5, "conf/variable.db".into()));
}

#[test]
fn the_key_of_a_type_overrides_a_default_set_by_a_variable() {
    let text = "[jobs.a]\ntimeout = '5s'\n[jobs.b]\n";
    let rules = check_text(text, &[("JOBQ_DEFAULTS__TIMEOUT", "7s")]).unwrap().worker.job_types;
    assert_eq!(rules.of("a").limits.timeout.as_secs(), 5);
    assert_eq!(rules.of("b").limits.timeout.as_secs(), 7);
    assert_eq!(rules.of("dropped").limits.timeout.as_secs(), 7);
}

#[test]
fn variables_of_other_programs_are_ignored() {
    let others = [("JOBQ_CONFIG", "x"), ("JOBQ_JOB_ID", "7"), ("JOBQ_", ""), ("JOBQ_MY_APP__KEY", "1"), ("HOME", "/")];
    let settings = check_text("", &others).unwrap();
    assert_eq!(settings, check_text("", &[]).unwrap());
}

#[test]
fn an_empty_variable_counts_as_set() {
    let error = check_text("", &[("JOBQ_QUEUE__DATABASE", "")]).unwrap_err().to_string();
    assert!(error.contains("JOBQ_QUEUE__DATABASE="), "{error}");
}

#[test]
fn a_string_variable_is_taken_literally() {
    for text in ["5#x", "true", "1979-05-27", "[x", "a = b", "12\nb = 3", " x "] {
        let settings = check_text("", &[("JOBQ_QUEUE__DATABASE", text)]).unwrap();
        assert_eq!(settings.queue.database, PathBuf::from("conf").join(text));
    }
}

/// A value that `schema` allows and that differs from `default`, as a variable writes it.
fn another_value(schema: &Value, default: &Value) -> String {
    if let Some(example) = schema.pointer("/examples/0") {
        return toml_of(example);
    }
    let words = schema.get("enum").or_else(|| schema.pointer("/items/enum")).and_then(Value::as_array);
    if let Some(word) = words.into_iter().flatten().find(|word| *word != default) {
        return word.as_str().unwrap().to_owned();
    }
    match default {
        Value::Number(number) if number.is_f64() => (number.as_f64().unwrap() * 2.0).to_string(),
        Value::Number(number) => (number.as_i64().unwrap() + 1).to_string(),
        Value::Object(table) => {
            let (key, inner) = table.iter().next().unwrap();
            format!("{{ {key} = '{}' }}", another_value(&schema["properties"][key], inner))
        }
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
            format!("{}{unit}", number.parse::<u64>().unwrap() * 2)
        }
        _ if schema.pointer("/oneOf/1/type") == Some(&json!("integer")) => "5".to_owned(),
        _ => "other".to_owned(),
    }
}

/// A JSON value as TOML, in one line.
fn toml_of(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => format!("[{}]", items.iter().map(toml_of).collect::<Vec<_>>().join(", ")),
        Value::Object(table) => {
            let entries = table.iter().map(|(key, value)| format!("{key} = {}", toml_of(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The schema of a key and its default (inside an inline table, the part of the table's default).
fn described(key: &str) -> (Value, Value) {
    let schema = schema();
    let mut parts = key.split('.');
    let mut table = &schema["properties"][parts.next().unwrap()];
    if key.starts_with("jobs.NAME.") {
        table = table["patternProperties"].as_object().unwrap().values().next().unwrap();
        parts.next();
    }
    let outer = &table["properties"][parts.next().unwrap()];
    let default = outer.get("default").cloned().unwrap_or_default();
    match parts.next() {
        Some(inner) => (outer["properties"][inner].clone(), default[inner].clone()),
        None => (outer.clone(), default),
    }
}

#[test]
fn every_key_changes_something_by_its_variable() {
    let text = "[jobs.NAME]\n";
    let before = check_text(text, &[]).unwrap();
    for key in keys().iter().filter(|key| *key != "server.listen" && !key.starts_with("jobs.NAME.dirs.")) {
        let variable = format!("JOBQ_{}", key.replace('.', "__").to_uppercase());
        let (schema, default) = described(key);
        let value = another_value(&schema, &default);
        let after = check_text(text, &[(&variable, &value)]).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(before, after, "{key} = {value}");
    }
}

#[test]
fn every_default_can_be_changed_for_one_type() {
    let text = "[jobs.NAME]\n";
    let before = check_text(text, &[]).unwrap();
    for key in keys().iter().filter_map(|key| key.strip_prefix("defaults.")) {
        let variable = format!("JOBQ_JOBS__NAME__{}", key.replace('.', "__").to_uppercase());
        let (schema, default) = described(&format!("defaults.{key}"));
        let value = another_value(&schema, &default);
        let after = check_text(text, &[(&variable, &value)]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(before.worker.job_types.default, after.worker.job_types.default, "{key}");
        assert_ne!(before.worker.job_types.of("NAME"), after.worker.job_types.of("NAME"), "{key} = {value}");
    }
}
