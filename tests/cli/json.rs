//! `docs/json.md`: the objects that it shows have exactly the keys that the commands print.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::standing;
use crate::home::Home;

/// The example object of each heading.
fn documented() -> BTreeMap<String, Value> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
    let text = fs::read_to_string(page).unwrap();
    let sections = text.split("\n## ").skip(1);
    let example = |section: &str| {
        let (heading, rest) = section.split_once('\n').unwrap();
        let object = rest.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        (
            heading.to_owned(),
            serde_json::from_str(object.unwrap_or_else(|| panic!("{heading} has no example"))).unwrap(),
        )
    };
    sections.map(example).collect()
}

/// Every key with its path: `types[].pending`.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.insert(path.clone());
                keys(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{path}[]"), found)),
        _ => {}
    }
}

fn keys_of(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    keys(value, "", &mut found);
    found
}

fn one(home: &Home, args: &[&str]) -> Value {
    let said = home.jobq(&[args, &["-o", "json"]].concat());
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{args:?}: {said:?}"))
}

fn first(home: &Home, args: &[&str]) -> Value {
    let said = home.jobq(&[args, &["-o", "ndjson"]].concat());
    let line = said.stdout.lines().next().unwrap_or_else(|| panic!("{args:?}: {said:?}"));
    serde_json::from_str(line).unwrap()
}

#[test]
fn every_documented_object_has_the_keys_that_are_printed() {
    let (home, jobs) = standing::home();
    let running = Home::new("");
    running.plugin("echo", "echo");
    running.enqueue("echo", "1", &["--in", "1h"]);
    let daemon = running.daemon();
    running.await_plugin("echo", "serving");
    let mut printed = BTreeMap::new();
    let mut add = |heading: &str, object| _ = printed.insert(heading.to_owned(), object);
    add("Job", first(&home, &["list", "--status", "running"]));
    let mut shown = one(&home, &["show", &jobs.dead]);
    add("Attempt", shown["attempts_log"][0].take());
    add("Log line", first(&home, &["logs", &jobs.dead]));
    add("Status", one(&running, &["status"]));
    add("Plugin", first(&running, &["plugin", "list"]));
    add("Enqueued job", one(&home, &["enqueue", "report"]));
    add("Retried or cancelled job", first(&home, &["retry", &jobs.dead]));
    add("Dry run", one(&home, &["retry", "--status", "cancelled", "--dry-run"]));
    add("Retried jobs", one(&home, &["retry", "--status", "cancelled"]));
    add("Cancelled jobs", one(&home, &["cancel", "--all"]));
    add("Jobs deleted by a filter", one(&home, &["delete", "--status", "cancelled", "--type", "report"]));
    add("Deleted jobs", one(&home, &["cleanup"]));
    let demo = home.jobq(&["demo", "-o", "ndjson"]);
    add("Demo job", serde_json::from_str(demo.stdout.lines().next().unwrap()).unwrap());
    let dir = demo.stderr.lines().find_map(|line| line.strip_prefix("A fresh directory: ")).unwrap();
    fs::remove_dir_all(dir).unwrap();
    daemon.stop();
    let documented = documented();
    assert_eq!(documented.keys().collect::<Vec<_>>(), printed.keys().collect::<Vec<_>>());
    for (heading, example) in documented {
        assert_eq!(keys_of(&example), keys_of(&printed[&heading]), "{heading}");
    }
}

#[test]
fn a_job_has_the_same_keys_wherever_it_is_printed() {
    let (home, jobs) = standing::home();
    let mut shown = one(&home, &["show", &jobs.running]);
    assert_eq!(shown.as_object_mut().unwrap().remove("attempts_log"), Some(Value::Array(vec![])));
    assert_eq!(one(&home, &["list", "--status", "running"])[0], shown);
    assert_eq!(first(&home, &["list", "--status", "running"]), shown);
    let listed = one(&home, &["list"]);
    let lines = home.jobq(&["list", "-o", "ndjson"]).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed, Value::Array(lines));
    assert_eq!(home.jobq(&["list", "--type", "none", "-o", "json"]).stdout, "[]\n");
}
