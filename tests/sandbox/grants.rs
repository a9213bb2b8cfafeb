//! A guest can use what it is granted and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use jobq::sandbox::{DirGrant, GuestOutcome, Metering, Source};
use serde_json::{Value, json};

use super::support::{Run, load};

async fn completed(run: &Run) -> Value {
    let report = run.alone().await;
    let GuestOutcome::Completed(result) = &report.outcome else { panic!("{report:?}") };
    serde_json::from_str(result).expect("JSON")
}

fn grant(host: &Path, write: bool) -> DirGrant {
    DirGrant { host: host.to_path_buf(), guest: "/granted".into(), write }
}

/// The results of these operations with `dirs` granted.
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
async fn a_writable_directory_allows_all_operations() {
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
async fn a_read_only_directory_cannot_be_changed() {
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
async fn no_path_leads_out_of_a_directory() {
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
async fn a_symlink_created_by_a_guest_does_not_lead_out_either() {
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
async fn a_missing_directory_fails_the_attempt_and_is_named() {
    let mut run = Run::guest("files", "[]");
    run.grants.dirs = vec![grant(Path::new("/nowhere/at all"), true)];
    let (report, _) = run.beside_a_neighbour().await;
    let GuestOutcome::Failed { message, after: None } = &report.outcome else { panic!("{report:?}") };
    assert!(message.contains("`/nowhere/at all`") && message.contains("`dirs`"), "{message}");
}

/// The lines that the host wrote to the log of a run.
fn denials(run: &Run) -> Vec<String> {
    let lines = run.handle.take_lines();
    assert!(lines.iter().all(|line| (line.source, line.level) == (Source::Log, Some("warn"))), "{lines:?}");
    lines.into_iter().map(|line| line.message).collect()
}

#[tokio::test]
async fn a_failed_attempt_logs_the_directories_it_missed() {
    let operations = json!([
        {"op": "read", "path": "/one/a"},
        {"op": "stat", "path": "/data/in.csv"},
        {"op": "read", "path": "relative.txt"},
        {"op": "write", "path": "/out/deep/b", "text": "x"},
        {"op": "read", "path": "/data/in.csv"},
    ]);
    let run = Run::guest("files", &operations.to_string());
    let said: Vec<String> = serde_json::from_value(completed(&run).await).expect("strings");
    assert!(said.iter().all(|said| said == "error: No such file or directory (os error 44)"), "{said:?}");
    assert_eq!(denials(&run), Vec::<String>::new(), "a guest that completed had a way around");

    let operations =
        format!("[{},{{\"op\":\"fail\",\"path\":\"\"}}]", &operations.to_string()[1..operations.to_string().len() - 1]);
    let run = Run::guest("files", &operations);
    let report = run.alone().await;
    assert!(matches!(report.outcome, GuestOutcome::Failed { .. }), "{report:?}");
    let lines = denials(&run);
    let named: Vec<&str> = lines.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
    assert_eq!(named, ["denied /one/a", "denied /data/in.csv", "denied /relative.txt"], "the first three, each once");
    let wanted = r#"it needs { host = "DIRECTORY", guest = "/data" } in `dirs` under `[jobs.tested]` in jobq.toml"#;
    assert!(lines[1].contains(wanted), "{lines:?}");
    assert!(lines[2].contains(r#"guest = "/relative.txt""#), "nobody is told to grant the root: {lines:?}");
}

#[tokio::test]
async fn the_root_is_an_empty_directory_that_cannot_be_changed() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "x").expect("written");
    let said = operate(
        vec![grant(dir.path(), true)],
        json!([
            {"op": "list", "path": "/"},
            {"op": "open", "path": "/"},
            {"op": "mkdir", "path": "/new"},
            {"op": "remove", "path": "/granted"},
            {"op": "rename", "path": "/granted/a", "to": "/a"},
            {"op": "link", "path": "/a", "to": "/granted/a"},
            {"op": "link", "path": "/granted/b", "to": "/etc/passwd"},
            {"op": "symlink", "path": "/a", "to": "granted"},
            {"op": "readlink", "path": "/a"},
            {"op": "truncate", "path": "/a"},
            {"op": "read", "path": "/granted/a"},
        ]),
    )
    .await;
    assert!(said[..10].iter().all(|said| said.starts_with("error: ")), "{said:?}");
    assert_eq!(said[10], "x");
}

#[tokio::test]
async fn a_granted_root_replaces_the_empty_one() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "x").expect("written");
    let whole = DirGrant { host: dir.path().to_path_buf(), guest: "/".into(), write: false };
    assert_eq!(operate(vec![whole], json!([{"op": "read", "path": "/a"}])).await, ["x"]);
}

#[tokio::test]
async fn a_denied_change_logs_the_missing_setting() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "as it was").expect("written");
    for operation in [
        json!({"op": "write", "path": "/granted/a", "text": "x"}),
        json!({"op": "truncate", "path": "/granted/a"}),
        json!({"op": "open", "path": "/granted/a"}),
        json!({"op": "mkdir", "path": "/granted/a"}),
        json!({"op": "remove", "path": "/granted/a"}),
        json!({"op": "rename", "path": "/granted/a", "to": "/granted/b"}),
        json!({"op": "symlink", "path": "/granted/a", "to": "b"}),
    ] {
        let mut run = Run::guest("files", &json!([operation]).to_string());
        run.grants.dirs = vec![grant(dir.path(), false)];
        let said = completed(&run).await;
        assert!(said[0].as_str().is_some_and(|said| said.starts_with("error: ")), "{operation} {said}");
        let lines = denials(&run);
        assert!(
            lines.iter().any(|line| line.starts_with("denied a change of /granted/a: /granted is read-only")),
            "{operation} {lines:?}"
        );
        assert!(lines[0].contains("`write = true`") && lines[0].contains("`[jobs.tested]`"), "{lines:?}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("a")).expect("there"), "as it was");
}

#[tokio::test]
async fn a_read_only_directory_stays_read_only_however_it_is_opened() {
    let outer = tempfile::tempdir().expect("a directory");
    let (read, write) = (outer.path().join("read"), outer.path().join("write"));
    for dir in [&read, &write] {
        fs::create_dir_all(dir.join("sub")).expect("a directory");
        fs::write(dir.join("a"), "as it was").expect("written");
    }
    let of = |host: &Path, guest: &str, write| DirGrant { host: host.to_path_buf(), guest: guest.into(), write };
    let said = operate(
        vec![of(&read, "/read", false), of(&write, "/write", true)],
        json!([
            {"op": "open", "path": "/read"},
            {"op": "open", "path": "/read/sub"},
            {"op": "truncate", "path": "/read/a"},
            {"op": "rename", "path": "/read/a", "to": "/write/b"},
            {"op": "rename", "path": "/write/a", "to": "/read/b"},
            {"op": "link", "path": "/write/b", "to": "/read/a"},
            {"op": "link", "path": "/read/b", "to": "/write/a"},
            {"op": "symlink", "path": "/write/way", "to": "../read/a"},
            {"op": "write", "path": "/write/way", "text": "x"},
            {"op": "mkdir", "path": "/read/sub/new"},
            {"op": "remove", "path": "/read/sub"},
        ]),
    )
    .await;
    for (at, said) in said.iter().enumerate().filter(|(at, _)| *at != 7) {
        assert!(said.starts_with("error: "), "operation {at} said {said:?}");
    }
    assert_eq!(fs::read_to_string(read.join("a")).expect("there"), "as it was");
    assert_eq!(fs::read_to_string(write.join("a")).expect("there"), "as it was");
    assert!(read.join("sub").is_dir() && !read.join("b").exists() && !write.join("b").exists());
}

/// Exits with 0 if creating a TCP socket fails with `access-denied`.
const SOCKETS: &str = r#"(component
    (import "wasi:sockets/network@0.2.0" (instance $network
        (type $code (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
            "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
            "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
            "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
            "permanent-resolver-failure"))
        (export "error-code" (type (eq $code)))
        (type $family (enum "ipv4" "ipv6"))
        (export "ip-address-family" (type (eq $family)))))
    (alias export $network "error-code" (type $code))
    (alias export $network "ip-address-family" (type $family))
    (import "wasi:sockets/tcp@0.2.0" (instance $tcp (export "tcp-socket" (type (sub resource)))))
    (alias export $tcp "tcp-socket" (type $socket))
    (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $sockets
        (export "error-code" (type $its-code (eq $code)))
        (export "ip-address-family" (type $its-family (eq $family)))
        (export "tcp-socket" (type $its-socket (eq $socket)))
        (type $created (result (own $its-socket) (error $its-code)))
        (export "create-tcp-socket" (func (param "address-family" $its-family) (result $created)))))
    (core module $memory (memory (export "memory") 1))
    (core instance $memory (instantiate $memory))
    (core func $create (canon lower (func $sockets "create-tcp-socket") (memory (core memory $memory "memory"))))
    (core module $main
        (import "host" "create" (func $create (param i32 i32)))
        (import "host" "memory" (memory 1))
        (func (export "run") (result i32)
            (call $create (i32.const 0) (i32.const 16))
            (i32.or
                (i32.ne (i32.load8_u (i32.const 16)) (i32.const 1))
                (i32.ne (i32.load8_u (i32.const 20)) (i32.const 1)))))
    (core instance $main (instantiate $main
        (with "host" (instance (export "create" (func $create)) (export "memory" (memory $memory "memory"))))))
    (func $run (result (result)) (canon lift (core func $main "run")))
    (instance $exported (export "run" (func $run)))
    (export "wasi:cli/run@0.2.0" (instance $exported)))"#;

#[tokio::test]
async fn sockets_are_not_created() {
    let plugin = load(&wat::parse_str(SOCKETS).expect("the text of a component"), Metering::Time).expect("a program");
    let run = Run::of(plugin, "{}");
    assert_eq!(run.alone().await.outcome, GuestOutcome::Completed(String::new()));
    let lines = denials(&run);
    assert!(lines.len() == 1 && lines[0].contains("denied a socket") && lines[0].contains("`wasi:http`"), "{lines:?}");
}
