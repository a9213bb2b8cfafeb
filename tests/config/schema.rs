//! The JSON Schema of the settings: the copy at the root, its descriptions, and what it accepts.

use std::fs;
use std::path::{Path, PathBuf};

use jobq::config::{keys, schema};
use serde_json::Value;

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// `BLESS=1` updates the copy.
#[test]
fn the_copy_at_the_root_is_what_check_prints() {
    let printed = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        fs::write(root("jobq.schema.json"), &printed).unwrap();
    }
    let copy = fs::read_to_string(root("jobq.schema.json")).unwrap_or_default();
    assert!(copy == printed, "jobq.schema.json is out of date: BLESS=1 cargo test config updates it");
}

#[test]
fn every_key_is_described() {
    let schema = schema();
    let mut count = 0;
    for (section, table) in schema["properties"].as_object().unwrap() {
        if section == "jobs" {
            let (_, job) = table["patternProperties"].as_object().unwrap().iter().next().unwrap();
            check_descriptions("jobs.NAME", job, &mut count);
        } else {
            check_descriptions(section, table, &mut count);
        }
    }
    assert!(count > keys().len(), "the keys of [defaults] occur twice: {count} of {}", keys().len());
}

fn check_descriptions(path: &str, table: &Value, count: &mut usize) {
    assert_eq!(table["additionalProperties"], false, "{path}");
    for (key, shape) in table["properties"].as_object().unwrap() {
        let path = format!("{path}.{key}");
        assert!(shape["description"].as_str().is_some_and(|text| text.ends_with('.')), "{path} has no description");
        let inner = if shape["type"] == "array" { &shape["items"] } else { shape };
        if inner.get("properties").is_some() {
            check_descriptions(&path, inner, count);
        }
        *count += 1;
    }
}

#[test]
fn every_default_and_every_example_fits_its_own_shape() {
    let schema = schema();
    for section in ["queue", "worker", "plugins", "server", "retention", "defaults"] {
        for (key, shape) in schema["properties"][section]["properties"].as_object().unwrap() {
            let default = shape.get("default").unwrap_or_else(|| panic!("{section}.{key} has no default"));
            assert!(jsonschema::is_valid(shape, default), "{section}.{key} = {default}");
        }
    }
    let job = schema["properties"]["jobs"]["patternProperties"].as_object().unwrap().values().next().unwrap();
    for key in ["plugin", "concurrency", "env", "secrets", "dirs", "http", "enqueue"] {
        let shape = &job["properties"][key];
        assert!(jsonschema::is_valid(shape, &shape["examples"][0]), "{key}");
    }
}

#[test]
fn it_accepts_what_the_check_accepts() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let folder = root("tests/config/accepted");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let documents = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).chain([root("jobq.toml")]);
    for path in documents {
        let problems: Vec<String> = validator
            .iter_errors(&document(&path))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", path.display());
    }
}

#[test]
fn it_refuses_what_an_editor_can_detect() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for name in [
        "bad_durations",
        "dead_on",
        "grants",
        "http",
        "job_names",
        "plugins",
        "secrets",
        "server",
        "table_name",
        "unknown_keys",
        "unknown_sections",
        "worker_types_word",
        "wrong_types",
        "zero_and_minus_one",
    ] {
        let path = root("tests/config/refused").join(name).with_extension("toml");
        assert!(!validator.is_valid(&document(&path)), "{name} passes");
    }
}

fn document(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    let table: toml::Table = toml::from_str(text.trim_start_matches('\u{feff}')).unwrap();
    serde_json::to_value(table).unwrap()
}
