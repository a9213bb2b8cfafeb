//! Rules about the sources that the compiler does not enforce.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};

/// The modules that each module may import, besides itself.
const MAY_IMPORT: [(&str, &[&str]); 6] = [
    ("queue", &[]),
    ("sandbox", &[]),
    ("plugins", &["sandbox"]),
    ("worker", &["queue", "sandbox", "plugins"]),
    ("config", &["queue", "sandbox", "plugins", "worker"]),
    ("cli", &["queue", "sandbox", "plugins", "worker", "config"]),
];

/// The modules that may name a crate which belongs in one place, or the backend behind the store.
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

/// The modules that `code` names by `crate::MODULE` or in `use crate::{MODULE, …}`.
fn modules_named(code: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for part in code.split("crate::").skip(1) {
        let heads = match part.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or("").split(',').map(str::trim).collect(),
            None => vec![part],
        };
        let word = |head: &str| head.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        modules.extend(heads.into_iter().map(word).filter(|word| MAY_IMPORT.iter().any(|(module, _)| module == word)));
    }
    modules
}

#[test]
fn modules_import_only_what_they_may() {
    let mut broken = Vec::new();
    for (path, code) in sources() {
        let Some((module, may)) = MAY_IMPORT.iter().find(|(module, _)| path.starts_with(&format!("{module}/"))) else {
            continue;
        };
        let forbidden =
            modules_named(&code).into_iter().filter(|named| named != module && !may.contains(&named.as_str()));
        broken.extend(forbidden.map(|named| format!("{path} names crate::{named}")));
    }
    assert!(broken.is_empty(), "the import rule of ARCHITECTURE.md is broken:\n{}", broken.join("\n"));
}

#[test]
fn crates_are_named_only_in_their_module() {
    let mut broken = Vec::new();
    for (path, code) in sources() {
        for (name, modules) in NAMED_ONLY_IN {
            let allowed = modules.iter().any(|module| path.starts_with(&format!("{module}/")));
            if !allowed && code.contains(name) {
                broken.push(format!("{path} names {name}, which belongs in {}", modules.join(" and ")));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Code that reads a clock, waits, or does I/O. None of it belongs in a state machine.
const IMPURE: [&str; 7] = ["::now()", "tokio", ".await", "async ", "tracing::", "fastrand", "std::fs"];

#[test]
fn state_machines_read_no_clock_and_do_not_wait() {
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
fn the_import_rule_finds_imports() {
    assert_eq!(modules_named("use crate::queue::Job;"), ["queue"]);
    assert_eq!(modules_named("use crate::{plugins, worker};"), ["plugins", "worker"]);
    assert_eq!(modules_named("let x = crate::sandbox::Limits::default();"), ["sandbox"]);
    assert!(modules_named("use super::queue;").is_empty());
}

#[test]
fn every_file_opens_with_a_doc_comment() {
    let mut files = Vec::new();
    ["host/src", "tests"].iter().for_each(|dir| collect(&root().join(dir), &mut files));
    let silent = |path: &PathBuf| !fs::read_to_string(path).unwrap().starts_with("//!");
    let silent: Vec<_> = files.into_iter().filter(silent).collect();
    assert!(silent.is_empty(), "these do not open with `//!`: {silent:#?}");
}

#[test]
fn the_tests_of_the_invariants_exist() {
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

/// The file names in backticks of a table row, with `{a,b}` expanded.
fn files_named(row: &str) -> Vec<String> {
    let mut files = Vec::new();
    for name in row.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") || name.ends_with('/')) {
        match name.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
            Some((head, (names, tail))) => files.extend(names.split(',').map(|name| format!("{head}{name}{tail}"))),
            None => files.push(name.to_owned()),
        }
    }
    files
}

#[test]
fn the_files_that_the_architecture_names_exist() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("## Task → file").unwrap();
    let (mut seen, mut missing) = (0, Vec::new());
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let mut directory = root();
        for name in files_named(row) {
            let candidates = [root().join("host/src").join(&name), root().join(&name), directory.join(&name)];
            match candidates.iter().find(|path| path.exists()) {
                Some(path) if path.is_dir() => directory = path.clone(),
                Some(path) => directory = path.parent().unwrap().to_owned(),
                None => missing.push(name),
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "the table has moved: {seen} files");
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that don't exist: {missing:?}");
}
