//! `jobq run --drain`: runs what is due, then ends.

use std::process::Stdio;

use crate::home::{Home, eventually};

/// Runs a daemon until it has drained its queue, and returns its log.
fn drain(home: &Home) -> String {
    let mut command = home.command(&["run", "--drain"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap());
    let status = eventually("the daemon to drain", || child.try_wait().unwrap());
    let log = log.join().unwrap();
    assert!(status.success(), "{log}");
    log
}

#[test]
fn an_empty_queue_is_drained_at_once() {
    let home = Home::new("");
    assert!(drain(&home).contains("drained; no job is left"));
}

#[test]
fn it_runs_what_is_due_and_leaves_the_rest() {
    let home = Home::new("[defaults]\nbackoff = { base = \"1h\" }\n");
    home.plugin("answers", "answers").plugin("echo", "echo");
    let due: Vec<String> = (0..50).map(|_| home.enqueue("echo", "1", &[])).collect();
    let later = home.enqueue("echo", "2", &["--in", "1h"]);
    let failing = home.enqueue("answers", r#"{"do": "retry", "message": "m"}"#, &[]);
    let unserved = home.enqueue("nobody", "{}", &["--force"]);
    let log = drain(&home);
    assert!(log.contains("drained; left: 2 due later, 1 due of types that it does not serve"), "{log}");
    assert!(due.iter().all(|id| home.show(id)["status"] == "completed"));
    let status = |id: &str| home.show(id)["status"].as_str().unwrap().to_owned();
    assert_eq!([&later, &failing, &unserved].map(|id| status(id)), ["pending", "failed", "pending"]);
    assert_eq!(home.count("SELECT count(*) FROM jobs__daemons"), 0);
}

#[test]
fn follow_ups_and_retries_without_delay_are_run_too() {
    let home = Home::new("[defaults]\nbackoff = { base = \"0s\" }\n[jobs.follow]\nenqueue = [\"answers\"]\n");
    home.plugin("follow", "follow").plugin("answers", "answers");
    let failing = r#"{"do": "retry", "message": "m"}"#;
    let payload = serde_json::json!({"jobs": [{"type": "answers", "payload": failing}]}).to_string();
    let first = home.enqueue("follow", &payload, &[]);
    let log = drain(&home);
    assert!(log.contains("drained; no job is left"), "{log}");
    assert_eq!(home.show(&first)["status"], "completed");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE type = 'answers' AND status = 'dead' AND attempts = 3"), 1);
}
