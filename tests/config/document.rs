//! The `jobq.toml` that ships: it documents every key, with the default that holds.

use std::fs;
use std::path::Path;

use jobq::config::{Settings, check, keys};

use super::environment;
use super::rendering::render;

#[test]
fn it_is_accepted_and_changes_nothing_but_the_job_types_that_ship() {
    let mut shipped = checked(&document());
    assert_eq!(shipped.notes, Vec::<String>::new());
    assert_eq!(
        shipped.plugins.types.keys().collect::<Vec<_>>(),
        ["flaky", "generate_report", "process_csv", "send_email", "thumbnail", "webhook"]
    );
    let grants = shipped.worker.job_types.of("process_csv").grants.clone();
    assert_eq!((grants.dirs[0].guest.as_str(), grants.dirs[0].write), ("/data", false));
    shipped.plugins.types.clear();
    shipped.worker.job_types.by_type.clear();
    assert_eq!(render(&shipped), render(&checked("")));
}

#[test]
fn every_commented_default_is_the_default() {
    let (defaults, _example) =
        uncommented().split_once("[jobs.process_csv]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(render(&checked(&defaults)), render(&checked("")));
}

#[test]
fn every_commented_key_is_read() {
    let settings = checked(&uncommented());
    let example = settings.worker.job_types.of("invoice");
    assert_eq!(settings.plugins.types["invoice"].file, "invoice.wasm");
    assert!(example.concurrency.is_some());
    assert!(!example.grants.env.is_empty() && !example.grants.dirs.is_empty() && !example.grants.enqueue.is_empty());
    assert!(!example.grants.http.is_empty());
    assert_eq!(settings.secrets.iter().map(|secret| secret.name()).collect::<Vec<_>>(), ["API_KEY", "TOKEN"]);
}

#[test]
fn every_key_that_the_code_knows_stands_in_it_once() {
    let document = uncommented();
    for key in keys() {
        let (section, key) = key.rsplit_once('.').unwrap();
        let section = section.replace("NAME", "invoice");
        let (table, inline) = match section.as_str() {
            "defaults.backoff" => ("defaults", Some("backoff")),
            "jobs.invoice.dirs" => ("jobs.invoice", Some("dirs")),
            table => (table, None),
        };
        let lines = lines_of(&document, table);
        let found = lines.iter().filter(|line| match inline {
            Some(outer) => line.starts_with(&format!("{outer} = ")) && line.contains(&format!("{key} = ")),
            None => line.starts_with(&format!("{key} = ")),
        });
        assert_eq!(found.count(), 1, "{key} in [{table}]");
    }
}

#[test]
fn every_key_is_explained_by_the_line_above() {
    let document = document();
    let mut above = "";
    for line in document.lines() {
        if is_commented_key(line) {
            assert!(above.starts_with("# ") && above.ends_with('.'), "{line}");
        }
        above = line;
    }
}

fn document() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobq.toml")).unwrap()
}

/// `#:schema` is for editors, `# text` is a comment, `#[table]` a table.
fn is_commented_key(line: &str) -> bool {
    line.starts_with('#')
        && !line.starts_with("# ")
        && line != "#"
        && !line.starts_with("#[")
        && !line.starts_with("#:")
}

/// The document with every key in force: `#key` is a key, `# text` is a comment.
fn uncommented() -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(key) if is_commented_key(line) || key.starts_with('[') => key.to_owned() + "\n",
        _ => line.to_owned() + "\n",
    };
    document().lines().map(line).collect()
}

fn lines_of<'a>(document: &'a str, table: &str) -> Vec<&'a str> {
    let header = format!("[{table}]");
    document.lines().skip_while(|line| *line != header).skip(1).take_while(|line| !line.starts_with('[')).collect()
}

fn checked(text: &str) -> Settings {
    check(text, "jobq.toml", Path::new(""), &environment(&[])).unwrap()
}
