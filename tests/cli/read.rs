//! The shapes that scripts rely on.

use serde_json::Value;

use crate::home::Home;

#[test]
fn status_counts_every_state() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    let gone = home.enqueue("echo", "2", &[]);
    assert_eq!(home.jobq(&["status"]).stdout, "pending: 2, running: 0, completed: 0, failed: 0, dead: 0\n");
    home.jobq(&["cancel", &gone]);
    assert_eq!(
        home.jobq(&["status"]).stdout,
        "pending: 1, running: 0, completed: 0, failed: 0, dead: 0, cancelled: 1\n"
    );
    let counts: Value = serde_json::from_str(&home.jobq(&["status", "-o", "json"]).stdout).unwrap();
    assert_eq!(counts["pending"], 1);
    assert_eq!(counts["cancelled"], 1);
    assert_eq!(counts["dead"], 0);
}

#[test]
fn list_is_newest_first_and_filters() {
    let home = Home::new("");
    home.plugin("echo", "echo").plugin("other", "echo");
    let ids: Vec<String> = (0..4).map(|n| home.enqueue(if n == 1 { "other" } else { "echo" }, "1", &[])).collect();
    home.jobq(&["cancel", &ids[2]]);
    let list = |args: &[&str]| -> Vec<Value> {
        let said = home.jobq(&[&["list", "-o", "ndjson"][..], args].concat());
        said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let ids_of = |jobs: Vec<Value>| jobs.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(ids_of(list(&[])), newest_first);
    assert_eq!(ids_of(list(&["--limit", "2"])), newest_first[..2]);
    assert_eq!(ids_of(list(&["--status", "cancelled"])), [ids[2].clone()]);
    assert_eq!(ids_of(list(&["--type", "other"])), [ids[1].clone()]);
    assert!(list(&["--type", "other", "--status", "dead"]).is_empty());
    assert!(list(&[])[0].get("attempts_log").is_none());
}

#[test]
fn a_job_is_found_by_the_beginning_of_its_id() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let id = home.enqueue("echo", "1", &[]);
    let insert = "INSERT INTO jobs (id, type) VALUES (?1, 'echo')";
    ["mail-2026-a", "mail-2026-b"].iter().for_each(|id| _ = home.sql().execute(insert, [id]).unwrap());
    assert_eq!(home.show(&id[..20])["id"], id.as_str());
    assert_eq!(home.jobq(&["logs", "mail-2026-a"]).code, 0);
    let said = home.jobq(&["show", "mail-2026"]);
    assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
    assert!(said.stderr.contains("mail-2026-a\n") && said.stderr.contains("mail-2026-b\n"), "{said:?}");
    assert_eq!(home.jobq(&["logs", "mail-"]).code, 3, "too short for a beginning");
}

#[test]
fn logs_are_one_object_a_line_with_their_source() {
    let home = Home::new("");
    home.plugin("context", "context");
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "context", "{}", "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    let id = said.stderr.lines().next().unwrap();
    let said = home.jobq(&["logs", id, "-o", "ndjson"]);
    let lines: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for source in ["log", "stdout", "stderr"] {
        assert!(lines.iter().any(|line| line["source"] == source), "{lines:?}");
    }
    for level in ["debug", "info", "warn", "error"] {
        assert!(lines.iter().any(|line| line["level"] == level), "{lines:?}");
    }
    assert!(lines.iter().all(|line| line["attempt"] == 1 && line["lease"] == 1 && line["time"].is_string()));
    daemon.stop();
}

#[test]
fn check_names_what_does_not_load_and_what_is_not_granted() {
    let home = Home::new("[jobs.follow]\n[jobs.gone]\n");
    home.plugin("follow", "follow").plugin_bytes("bad", b"hello");
    let said = home.jobq(&["check"]);
    assert_eq!(said.code, 5, "{said:?}");
    for text in ["bad.wasm", "text, not WebAssembly", "gone.wasm", "`follow` imports jobq:handler/queue", "enqueue ="] {
        assert!(said.stdout.contains(text), "lacks {text:?}: {said:?}");
    }
    let home = Home::new("");
    home.plugin("echo", "echo");
    assert_eq!(home.jobq(&["check"]).code, 0);
}

#[test]
fn cleanup_deletes_what_has_ended_and_nothing_else() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let waiting = home.enqueue("echo", "1", &[]);
    let ended = home.enqueue("echo", "2", &[]);
    home.jobq(&["cancel", &ended]);
    assert_eq!(home.jobq(&["cleanup", "--older-than", "1h"]).stdout, "deleted 0 jobs\n");
    home.sql().execute("UPDATE jobs SET completed_at = completed_at - 7200000 WHERE status = 'cancelled'", []).unwrap();
    assert_eq!(home.jobq(&["cleanup", "--older-than", "1h"]).stdout, "deleted 1 jobs\n");
    assert_eq!(home.jobq(&["show", &ended]).code, 3);
    assert_eq!(home.show(&waiting)["status"], "pending");
}
