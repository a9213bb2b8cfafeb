//! The shapes that scripts rely on.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::standing;
use crate::home::{Home, eventually};

#[test]
fn status_counts_every_state() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    let gone = home.enqueue("echo", "2", &[]);
    let first_line = || home.jobq(&["status"]).stdout.lines().next().unwrap().to_owned();
    assert_eq!(first_line(), "pending: 2, running: 0, completed: 0, failed: 0, dead: 0");
    home.jobq(&["cancel", &gone]);
    assert_eq!(first_line(), "pending: 1, running: 0, completed: 0, failed: 0, dead: 0, cancelled: 1");
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
fn status_says_which_types_wait_what_runs_and_what_nothing_serves() {
    let home = Home::new("");
    home.plugin("send_email", "echo");
    home.enqueue("send_email", "1", &["--in", "1h"]);
    home.sql().execute("INSERT INTO jobs (type) VALUES ('sendmail')", []).unwrap();
    let said = home.jobq(&["status"]).stdout;
    assert!(
        said.ends_with(
            "\nno daemon is running on this queue\nnote: nothing serves `sendmail`; did you mean `send_email`?\n"
        ),
        "{said}"
    );
    assert!(home.jobq(&["list"]).stdout.contains("nothing serves `sendmail`; did you mean"));
    let daemon = home.daemon();
    home.await_plugin("send_email", "serving");
    let said = home.jobq(&["status"]).stdout;
    assert!(said.contains("0 of ") && said.contains(" slots\n"), "{said}");
    assert!(said.ends_with("note: no running daemon serves `sendmail`; did you mean `send_email`?\n"), "{said}");
    let object: Value = serde_json::from_str(&home.jobq(&["status", "-o", "json"]).stdout).unwrap();
    assert_eq!((&object["types"][0]["type"], &object["types"][0]["unserved"]), (&"send_email".into(), &Value::Null));
    assert!(object["types"][1]["oldest_due"].is_string() && object["types"][1]["unserved"].is_string());
    assert_eq!(object["daemons"][0]["pid"], daemon.pid());
    daemon.kill();
    let said = home.jobq(&["status"]).stdout;
    assert!(said.contains("\nno daemon is running on this queue\n"), "its lock proves that it is dead: {said}");
    assert!(home.jobq(&["plugin", "list"]).stderr.contains("no daemon is running on this queue"));
}

#[test]
fn plugin_list_counts_the_attempts_of_each_type_of_a_shared_file() {
    let home = Home::new("[jobs.one]\nplugin = \"echo.wasm\"\n[jobs.other]\nplugin = \"echo.wasm\"\n");
    home.plugin("echo", "echo");
    let daemon = home.daemon();
    for _ in 0..2 {
        home.jobq(&["enqueue", "one", "1", "--wait=100s"]);
    }
    let counted = eventually("the daemon to report the attempts", || {
        let rows = home.jobq(&["plugin", "list", "-o", "ndjson"]).stdout;
        let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let counted: Vec<_> = rows.map(|row| (row["type"].clone(), row["attempts"].clone())).collect();
        counted.iter().any(|(_, attempts)| *attempts == 2).then_some(counted)
    });
    assert_eq!(counted, [("one".into(), 2.into()), ("other".into(), 0.into())]);
    daemon.stop();
}

#[test]
fn what_is_claimed_ahead_is_pending_for_readers() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let id = home.enqueue("echo", "1", &[]);
    let claim =
        "UPDATE jobs SET status = 'running', lease = 1, lease_until = 9999999999999, started_at = 1, worker = 'w'";
    home.sql().execute(claim, []).unwrap();
    let first_line = || home.jobq(&["status"]).stdout.lines().next().unwrap().to_owned();
    assert!(first_line().starts_with("pending: 0, running: 1,"), "without a proof it may have started");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut file = format!("jobq worker file, version 1\nworker w\nboot {}\n", boot.trim()).into_bytes();
    file.resize(1024, 0);
    fs::write(home.path("jobq.db-jobq-jobs-w"), &file).unwrap();
    assert!(first_line().starts_with("pending: 1, running: 0,"));
    let object = home.show(&id);
    assert_eq!((&object["status"], &object["started_at"]), (&"pending".into(), &Value::Null));
    assert!(object["lease_until"].is_string() && object["worker"] == "w");
    assert!(home.jobq(&["show", &id]).stdout.contains("w (claimed, not started)"));
    assert!(home.jobq(&["list"]).stdout.contains("claimed by w"));
    assert_eq!(home.jobq(&["list", "-q", "--status", "running"]).stdout, "");
    assert_eq!(home.jobq(&["list", "-q", "--status", "pending"]).stdout.trim(), id);
}

#[test]
fn a_list_takes_several_states_an_order_and_prints_ids_alone() {
    let (home, jobs) = standing::home();
    let ids = |args: &[&str]| -> Vec<String> {
        let said = home.jobq(&[&["list", "-q"][..], args].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout.lines().map(str::to_owned).collect()
    };
    // An old job that died last.
    let latest = "UPDATE jobs SET completed_at = (SELECT max(completed_at) + 1 FROM jobs) WHERE id = ?1";
    home.sql().execute(latest, [&jobs.dead]).unwrap();
    let by_end = [jobs.dead.clone(), jobs.completed.clone(), jobs.cancelled.clone()];
    assert_eq!(ids(&["--status", "dead,completed", "--status", "cancelled"]), by_end);
    assert_eq!(ids(&["--sort", "ended"]), by_end);
    assert_eq!(ids(&["--status", "dead,completed", "--sort", "created"]), [jobs.completed.clone(), jobs.dead.clone()]);
    assert_eq!(ids(&["--sort", "scheduled"]), [jobs.pending.clone(), jobs.failed.clone()]);
    assert_eq!(ids(&["--status", "running,failed"]), [jobs.running.clone(), jobs.failed.clone()]);
    for args in [["--sort", "ended", "--status", "pending"], ["--sort", "scheduled", "--status", "dead"]] {
        assert_eq!(home.jobq(&[&["list"][..], &args].concat()).code, 2, "{args:?}");
    }
}

#[test]
fn a_list_that_is_cut_says_how_many_jobs_there_are() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    let insert = "INSERT INTO jobs (type, status, completed_at) WITH RECURSIVE n(i) AS \
                  (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) SELECT 'echo', 'completed', i FROM n";
    home.sql().execute(insert, []).unwrap();
    for (args, said) in [
        (&["list"][..], "50 of 2,000 jobs; `--limit` lists more\n"),
        (&["list", "--type", "echo", "--limit", "3"], "3 of 2,000 jobs; `--limit` lists more\n"),
        (&["list", "--status", "completed"], "50 of 1,999 jobs; `--limit` lists more\n"),
        (&["list", "--limit", "2000"], ""),
        (&["list", "--limit", "50", "-o", "json"], ""),
    ] {
        assert_eq!(home.jobq(args).stderr, said, "{args:?}");
    }
    let all = home.jobq(&["list", "--limit", "1000000", "-o", "ndjson"]).stdout;
    assert_eq!(all.lines().collect::<BTreeSet<_>>().len(), 2_000, "pages neither overlap nor leave gaps");
}

/// The list has 60 MB of payloads, results and errors.
#[cfg(target_os = "linux")]
#[test]
fn a_long_list_takes_little_memory() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    let insert = "INSERT INTO jobs (type, status, completed_at, payload, result, error) WITH RECURSIVE n(i) AS \
                  (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
                  SELECT 'echo', 'dead', i, json_quote(hex(zeroblob(500))), hex(zeroblob(500)), hex(zeroblob(500)) FROM n";
    home.sql().execute(insert, []).unwrap();
    let peak = |args: &[&str]| {
        let mut child = home.command(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let count = lines.by_ref().take(19_000).count();
        assert_eq!(count, 19_000);
        // It waits for its reader: the last lines do not fit into a pipe.
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().replace(" kB", "");
        lines.count();
        assert!(child.wait().unwrap().success());
        peak.parse::<u64>().unwrap() / 1024
    };
    let few = peak(&["list", "--limit", "19100", "-o", "ndjson"]);
    assert!(few < 64, "{few} MiB");
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
