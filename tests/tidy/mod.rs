//! Rules of the house that the compiler cannot see.

use std::fs;
use std::path::{Path, PathBuf};

/// What each room may name of the crate, besides itself.
const MAY_IMPORT: [(&str, &[&str]); 6] = [
    ("queue", &[]),
    ("sandbox", &[]),
    ("plugins", &["sandbox"]),
    ("worker", &["queue", "sandbox", "plugins"]),
    ("config", &["queue", "sandbox", "plugins", "worker"]),
    ("cli", &["queue", "sandbox", "plugins", "worker", "config"]),
];

/// Which rooms may name a crate that should stay in one place, or the backend behind the store.
const NAMED_ONLY_IN: [(&str, &[&str]); 6] = [
    ("wasmtime::", &["sandbox", "plugins"]),
    ("wasmtime_wasi", &["sandbox"]),
    ("rusqlite::", &["queue/sqlite"]),
    ("queue::sqlite", &["queue", "cli/bench"]),
    ("toml::", &["config"]),
    ("anyhow::", &["cli"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Rust file of the host with its path below `src/` and its code, comments left out.
fn sources() -> Vec<(String, String)> {
    let src = root().join("host/src");
    let mut files = Vec::new();
    collect(&src, &mut files);
    assert!(files.len() > 50, "the sources have moved: {} files in {}", files.len(), src.display());
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            (path.strip_prefix(&src).unwrap().display().to_string(), code)
        })
        .collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The rooms that `code` names by `crate::ROOM` or in `use crate::{ROOM, …}`.
fn rooms_named(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for part in code.split("crate::").skip(1) {
        let heads = match part.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or("").split(',').map(str::trim).collect(),
            None => vec![part],
        };
        let word = |head: &str| head.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        rooms.extend(heads.into_iter().map(word).filter(|word| MAY_IMPORT.iter().any(|(room, _)| room == word)));
    }
    rooms
}

#[test]
fn rooms_import_only_what_they_may() {
    let mut broken = Vec::new();
    for (path, code) in sources() {
        let Some((room, may)) = MAY_IMPORT.iter().find(|(room, _)| path.starts_with(&format!("{room}/"))) else {
            continue;
        };
        let forbidden = rooms_named(&code).into_iter().filter(|named| named != room && !may.contains(&named.as_str()));
        broken.extend(forbidden.map(|named| format!("{path} names crate::{named}")));
    }
    assert!(broken.is_empty(), "the import rule of ARCHITECTURE.md is broken:\n{}", broken.join("\n"));
}

#[test]
fn crates_are_named_only_in_their_room() {
    let mut broken = Vec::new();
    for (path, code) in sources() {
        for (name, rooms) in NAMED_ONLY_IN {
            let allowed = rooms.iter().any(|room| path.starts_with(&format!("{room}/")));
            if !allowed && code.contains(name) {
                broken.push(format!("{path} names {name}, which belongs in {}", rooms.join(" and ")));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What reads a clock, waits, or reaches outside: none of it belongs in a state machine.
const IMPURE: [&str; 7] = ["::now()", "tokio", ".await", "async ", "tracing::", "fastrand", "std::fs"];

#[test]
fn state_machines_read_no_clock_and_wait_for_nothing() {
    let is_machine = |path: &str| path.starts_with("worker/machine/") || path == "queue/memory/table.rs";
    let mut seen = 0;
    let mut broken = Vec::new();
    for (path, code) in sources().into_iter().filter(|(path, _)| is_machine(path)) {
        seen += 1;
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        broken.extend(IMPURE.iter().filter(|word| code.contains(**word)).map(|word| format!("{path}: {word}")));
    }
    assert!(seen > 6, "the machines have moved");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_import_rule_sees_what_it_should() {
    assert_eq!(rooms_named("use crate::queue::Job;"), ["queue"]);
    assert_eq!(rooms_named("use crate::{plugins, worker};"), ["plugins", "worker"]);
    assert_eq!(rooms_named("let x = crate::sandbox::Limits::default();"), ["sandbox"]);
    assert!(rooms_named("use super::queue;").is_empty());
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut files = Vec::new();
    ["host/src", "tests"].iter().for_each(|dir| collect(&root().join(dir), &mut files));
    let silent = |path: &PathBuf| !fs::read_to_string(path).unwrap().starts_with("//!");
    let silent: Vec<_> = files.into_iter().filter(silent).collect();
    assert!(silent.is_empty(), "these do not open with `//!`: {silent:#?}");
}

#[test]
fn the_tests_that_bear_the_invariants_exist() {
    let listed = fs::read_to_string(root().join("tests/INVARIANTS.md")).unwrap();
    let named: Vec<&str> = listed.split('`').filter(|text| text.contains("::") && !text.contains(' ')).collect();
    assert!(named.len() > 30, "the list is there");
    let missing = named.iter().filter(|name| {
        let (suite, test) = name.rsplit_once("::").unwrap();
        let file = root().join("tests").join(suite.replace("::", "/"));
        let source = fs::read_to_string(file.with_extension("rs")).unwrap_or_default();
        !source.contains(&format!("fn {test}("))
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "tests/INVARIANTS.md names tests that are not there: {missing:?}");
}
