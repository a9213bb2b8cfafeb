//! What a guest is not granted it does not get, however it asks.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use jobq::sandbox::{DirGrant, Outcome, Source};
use serde_json::{Value, json};

use super::support::Run;

async fn completed(run: &Run) -> Value {
    let report = run.alone().await;
    let Outcome::Completed(result) = &report.outcome else { panic!("{report:?}") };
    serde_json::from_str(result).expect("JSON")
}

fn grant(host: &Path, write: bool) -> DirGrant {
    DirGrant { host: host.to_path_buf(), guest: "/granted".into(), write }
}

/// What each of these operations said, in a sandbox that is granted `dirs`.
async fn operate(dirs: Vec<DirGrant>, operations: Value) -> Vec<String> {
    let mut run = Run::guest("files", &operations.to_string());
    run.grants.dirs = dirs;
    serde_json::from_value(completed(&run).await).expect("strings")
}

#[tokio::test]
async fn a_handler_has_no_environment_and_no_arguments() {
    assert_eq!(completed(&Run::guest("env", "{}")).await, json!({"env": {}, "args": []}));
}

#[tokio::test]
async fn a_handler_has_the_environment_it_is_granted() {
    let mut run = Run::guest("env", "{}");
    run.grants.env =
        BTreeMap::from([("MAIL_FROM".into(), "noreply@example.com".into()), ("EMPTY".into(), String::new())]);
    assert_eq!(completed(&run).await["env"], json!({"MAIL_FROM": "noreply@example.com", "EMPTY": ""}));
}

#[tokio::test]
async fn without_a_grant_there_are_no_files() {
    let said = operate(
        vec![],
        json!([
            {"op": "read", "path": "/etc/passwd"},
            {"op": "list", "path": "/"},
            {"op": "list", "path": "."},
            {"op": "write", "path": "/tmp/jobq-was-here", "text": "x"},
        ]),
    )
    .await;
    assert!(said.iter().all(|said| said.starts_with("error: ")), "{said:?}");
    assert!(!Path::new("/tmp/jobq-was-here").exists());
}

#[tokio::test]
async fn a_writable_directory_can_be_worked_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = operate(
        vec![grant(dir.path(), true)],
        json!([
            {"op": "mkdir", "path": "/granted/sub"},
            {"op": "write", "path": "/granted/sub/a.txt", "text": "one"},
            {"op": "append", "path": "/granted/sub/a.txt", "text": " two"},
            {"op": "rename", "path": "/granted/sub/a.txt", "to": "/granted/b.txt"},
            {"op": "read", "path": "/granted/b.txt"},
            {"op": "list", "path": "/granted"},
        ]),
    )
    .await;
    assert_eq!(said, ["ok", "ok", "ok", "ok", "one two", "b.txt\nsub"]);
    assert_eq!(fs::read_to_string(dir.path().join("b.txt")).expect("written"), "one two");
}

#[tokio::test]
async fn a_directory_to_read_cannot_be_changed() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.txt"), "as it was").expect("written");
    let said = operate(
        vec![grant(dir.path(), false)],
        json!([
            {"op": "read", "path": "/granted/a.txt"},
            {"op": "write", "path": "/granted/a.txt", "text": "x"},
            {"op": "append", "path": "/granted/a.txt", "text": "x"},
            {"op": "write", "path": "/granted/new.txt", "text": "x"},
            {"op": "mkdir", "path": "/granted/new"},
            {"op": "remove", "path": "/granted/a.txt"},
            {"op": "rename", "path": "/granted/a.txt", "to": "/granted/b.txt"},
            {"op": "symlink", "path": "/granted/link", "to": "a.txt"},
            {"op": "link", "path": "/granted/link", "to": "/granted/a.txt"},
        ]),
    )
    .await;
    assert_eq!(said[0], "as it was");
    assert!(said[1..].iter().all(|said| said.starts_with("error: ")), "{said:?}");
    let names: Vec<_> =
        fs::read_dir(dir.path()).expect("a directory").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names, ["a.txt"]);
    assert_eq!(fs::read_to_string(dir.path().join("a.txt")).expect("there"), "as it was");
}

#[tokio::test]
async fn no_way_leads_out_of_a_directory() {
    let outer = tempfile::tempdir().expect("a directory");
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).expect("a directory");
    fs::write(outer.path().join("secret"), "the secret").expect("written");
    symlink("../secret", inner.join("relative")).expect("a link");
    symlink(outer.path().join("secret"), inner.join("absolute")).expect("a link");
    symlink("..", inner.join("up")).expect("a link");
    symlink("/", inner.join("root")).expect("a link");
    let secret = outer.path().join("secret");

    let said = operate(
        vec![grant(&inner, true)],
        json!([
            {"op": "read", "path": "/granted/../secret"},
            {"op": "read", "path": "/granted/relative"},
            {"op": "read", "path": "/granted/absolute"},
            {"op": "read", "path": "/granted/up/secret"},
            {"op": "read", "path": "/granted/root/etc/passwd"},
            {"op": "list", "path": "/granted/up"},
            {"op": "list", "path": "/granted/root"},
            {"op": "list", "path": "/granted/.."},
            {"op": "read", "path": secret},
            {"op": "read", "path": "/etc/passwd"},
            {"op": "read", "path": "secret"},
            {"op": "write", "path": "/granted/relative", "text": "x"},
            {"op": "append", "path": "/granted/absolute", "text": "x"},
            {"op": "write", "path": "/granted/up/new", "text": "x"},
            {"op": "link", "path": "/granted/hard", "to": "/granted/../secret"},
            {"op": "rename", "path": "/granted/up/secret", "to": "/granted/mine"},
            {"op": "remove", "path": "/granted/up/secret"},
        ]),
    )
    .await;
    for (at, said) in said.iter().enumerate() {
        assert!(said.starts_with("error: "), "operation {at} said {said:?}");
    }
    assert_eq!(fs::read_to_string(&secret).expect("still there"), "the secret");
    assert!(!outer.path().join("new").exists());
}

#[tokio::test]
async fn a_link_that_a_guest_makes_leads_nowhere_either() {
    let outer = tempfile::tempdir().expect("a directory");
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).expect("a directory");
    fs::write(outer.path().join("secret"), "the secret").expect("written");
    let said = operate(
        vec![grant(&inner, true)],
        json!([
            {"op": "symlink", "path": "/granted/out", "to": "../secret"},
            {"op": "read", "path": "/granted/out"},
            {"op": "symlink", "path": "/granted/far", "to": "/etc/passwd"},
            {"op": "read", "path": "/granted/far"},
        ]),
    )
    .await;
    assert!(said[1].starts_with("error: ") && said[3].starts_with("error: "), "{said:?}");
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_a_failure_that_names_it() {
    let mut run = Run::guest("files", "[]");
    run.grants.dirs = vec![grant(Path::new("/nowhere/at all"), true)];
    let (report, _) = run.beside_a_neighbour().await;
    let Outcome::Failed { message, after: None } = &report.outcome else { panic!("{report:?}") };
    assert!(message.contains("`/nowhere/at all`") && message.contains("`dirs`"), "{message}");
}

#[tokio::test]
async fn a_request_is_denied_and_the_log_says_what_it_would_take() {
    let run = Run::guest("http", r#"{"url":"http://127.0.0.1:1/secret?token=1"}"#);
    let answer = completed(&run).await;
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("HttpRequestDenied")), "{answer}");
    let lines = run.tap.take_lines();
    assert_eq!((lines[0].source, lines[0].level), (Source::Log, Some("warn")));
    let message = &lines[0].message;
    assert!(message.contains(r#"`http = ["http://127.0.0.1:1"]` under `[jobs.tested]`"#), "{message}");
    assert!(!message.contains("token"), "{message}");
}
