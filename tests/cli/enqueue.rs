//! `jobq enqueue`: every kind of input, and what is refused.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::home::{Home, eventually};

fn home() -> Home {
    let home = Home::new("[jobs.known]\nmax_timeout = \"1m\"\npriority = 3\n");
    home.plugin("echo", "echo");
    home
}

#[test]
fn the_id_alone_goes_to_stdout() {
    let home = home();
    let said = home.jobq(&["enqueue", "echo", "{}"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_eq!(said.stdout.trim_end().len(), 36);
    assert_eq!(said.stdout.lines().count(), 1);
}

/// The commands sleep through their limit, and the jobs end meanwhile. They are several, for one may happen to see the
/// change before it sees the time.
#[test]
fn a_wait_reads_the_job_once_more_when_its_time_is_up() {
    let home = home();
    home.enqueue("echo", "{}", &["--in", "1h"]);
    let limit = Duration::from_secs(8);
    let wait = || {
        let mut command = home.command(&["enqueue", "echo", "{}", "--wait=8s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let waiting: Vec<_> = std::iter::repeat_with(wait).take(6).collect();
    eventually("all to wait", || (home.count("SELECT count(*) FROM jobs") == 7).then_some(()));
    let signal = |name: &str| {
        let ids = waiting.iter().map(|command| command.id().to_string());
        assert!(Command::new("kill").arg(name).args(ids).status().unwrap().success());
    };
    signal("-STOP");
    let end = "UPDATE jobs SET status = 'completed', result = '7', completed_at = created_at WHERE seq > 1";
    assert_eq!(home.sql().execute(end, []).unwrap(), 6);
    std::thread::sleep(limit);
    signal("-CONT");
    for command in waiting {
        let output = command.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"7\n"[..]));
    }
}

#[test]
fn every_option_is_stored() {
    let home = home();
    let options =
        ["--priority", "-7", "--max-attempts", "5", "--timeout", "20s", "--key", "k", "--at", "2100-01-02 03:04"];
    let job = home.show(&home.enqueue("known", "[1]", &options));
    assert_eq!(job["priority"], -7);
    assert_eq!(job["max_attempts"], 5);
    assert_eq!(job["timeout_ms"], 20_000);
    assert_eq!(job["unique_key"], "k");
    assert_eq!(job["scheduled_at"], "2100-01-02T03:04:00.000Z");
    assert_eq!(job["status"], "pending");
    assert_eq!(job["attempts_log"], json!([]));
    let job = home.show(&home.enqueue("known", "{}", &[]));
    assert_eq!((&job["priority"], &job["max_attempts"]), (&json!(3), &json!(null)), "the type's priority");
}

#[test]
fn payloads_come_back_byte_for_byte_from_every_input() {
    let home = home();
    let daemon = home.daemon();
    let big = format!("\"{}\"", "ä".repeat(400_000));
    let texts = [
        r#" {"n": 12345678901234567890, "n": 1.0e+2} "#,
        r#"["\u0000", "\ud800", "🦀", "\u202e", "שלום"]"#,
        "[1,\n 2]",
        &big,
    ];
    for text in texts {
        let said = home.jobq_with_input(&["enqueue", "echo", "-", "--wait=100s"], format!("{text}\n").as_bytes());
        assert_eq!((said.code, said.stdout.trim_end_matches('\n')), (0, text));
        fs::write(home.path("request.json"), text).unwrap();
        let said = home.jobq(&["enqueue", "echo", "@request.json", "--wait=100s"]);
        assert_eq!(said.stdout.trim_end_matches('\n'), text);
        let id = said.stderr.lines().next().unwrap();
        let job = home.show(id);
        assert_eq!((job["payload"].as_str(), job["result"].as_str()), (Some(text), Some(text)));
    }
    daemon.stop();
}

#[test]
fn a_held_key_prints_the_id_of_its_holder() {
    let home = home();
    let holder = home.enqueue("echo", "1", &["--key", "k", "--in", "1h"]);
    let said = home.jobq(&["enqueue", "echo", "2", "--key", "k"]);
    assert_eq!((said.code, said.stdout.trim_end()), (0, holder.as_str()));
    assert!(said.stderr.contains(&holder), "{said:?}");
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 1);
}

#[test]
fn a_wait_ends_with_the_job_or_its_timeout() {
    let home = home();
    home.plugin("answers", "answers");
    let said = home.jobq(&["enqueue", "echo", "1", "--wait=100ms"]);
    assert_eq!((said.code, said.stdout.as_str()), (124, ""), "nobody runs it");
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "answers", r#"{"do": "fatal", "message": "no such account"}"#, "--wait"]);
    assert_eq!((said.code, said.stdout.as_str()), (100, ""));
    assert!(said.stderr.contains("no such account"), "{said:?}");
    daemon.stop();
}

#[test]
fn a_bulk_file_is_added_whole_or_not_at_all() {
    let home = home();
    let good =
        "{\"type\": \"echo\", \"payload\": {\"n\" : 1.50}, \"priority\": 2, \"in\": \"1h\"}\n\n{\"type\": \"known\"}\n";
    let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], good.as_bytes());
    assert_eq!((said.code, said.stdout.lines().count()), (0, 2), "{said:?}");
    let first = home.show(said.stdout.lines().next().unwrap());
    assert_eq!((first["payload"].as_str(), first["priority"].as_i64()), (Some("{\"n\" : 1.50}"), Some(2)));

    let bad = "{\"type\": \"echo\"}\nnonsense\n{\"type\": \"ecko\"}\n{\"type\": \"echo\", \"priority\": 99999}\n{\"typ\": \"echo\"}\n";
    fs::write(home.path("many.ndjson"), bad).unwrap();
    let said = home.jobq(&["enqueue", "--bulk", "many.ndjson"]);
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    for line in ["line 2:", "line 3:", "line 4:", "line 5:"] {
        assert!(said.stderr.contains(line), "{said:?}");
    }
    assert!(!said.stderr.contains("line 1:"), "{said:?}");
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 2);
}

#[test]
fn bad_input_is_refused_and_nothing_is_stored() {
    let home = home();
    fs::write(home.path("latin1.json"), b"\"\xe9\"").unwrap();
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    fs::write(home.path("long.json"), &long).unwrap();
    let cases: [(&[&str], i32, &str); 17] = [
        (&["echo", "{'a': 1}"], 2, "the payload is not JSON"),
        (&["echo", "@latin1.json"], 2, "not UTF-8"),
        (&["echo", "@long.json"], 2, "queue.max_payload"),
        (&["echo", "@missing.json"], 3, "missing.json"),
        (&["ecko", "{}"], 3, "did you mean `echo`"),
        (&["bad type", "{}"], 2, "is not a job type"),
        (&["echo", "{}", "--priority", "40000"], 2, "40000"),
        (&["echo", "{}", "--max-attempts", "0"], 2, "at least 1"),
        (&["echo", "{}", "--in", "soon"], 2, "`soon` is not a duration"),
        (&["echo", "{}", "--in", "1M"], 2, "m for minutes"),
        (&["echo", "{}", "--at", "2100-01-01T03:00[Nowhere/Atlantis]"], 2, "Nowhere/Atlantis"),
        (&["echo", "{}", "--at", "yesterday"], 2, "`yesterday` is not an instant"),
        (&["echo", "{}", "--at", "1970-01-01T00:00:00Z"], 2, "too long ago"),
        (&["echo", "{}", "--in", "1s", "--at", "2100-01-01"], 2, "--at"),
        (&["known", "{}", "--timeout", "1h"], 2, "max_timeout"),
        (&["echo", "{}", "--timeout", "0s"], 2, "too short"),
        (&["echo", "{}", "--key", ""], 2, "the key is not valid"),
    ];
    for (args, code, text) in cases {
        let said = home.jobq(&[&["enqueue"][..], args].concat());
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{args:?} {said:?}");
        assert!(said.stderr.contains(text), "{args:?} {said:?}");
    }
    assert!(!home.path("jobq.db").exists() || home.count("SELECT count(*) FROM jobs") == 0);
}

#[test]
fn a_local_time_needs_a_time_zone_that_exists() {
    let home = home();
    let at = |zone: &str, at: &str| {
        let output = home.command(&["enqueue", "echo", "--at", at]).env("TZ", zone).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, id, _) = at("America/New_York", "2100-01-01 03:00");
    assert_eq!(code, Some(0));
    assert_eq!(home.show(id.trim_end())["scheduled_at"], "2100-01-01T08:00:00.000Z");
    let (code, id, _) = at("Nowhere/Atlantis", "2100-01-01T03:00[Europe/Paris]");
    assert_eq!(code, Some(0));
    assert_eq!(home.show(id.trim_end())["scheduled_at"], "2100-01-01T02:00:00.000Z");
    let (code, _, stderr) = at("Nowhere/Atlantis", "2100-01-01 03:00");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("there is no time zone `Nowhere/Atlantis`"), "{stderr}");
}

#[test]
fn a_null_payload_is_stored_and_a_bulk_line_must_be_an_object() {
    let home = home();
    let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], b"{\"type\": \"echo\", \"payload\": null}");
    assert_eq!(home.show(said.stdout.trim_end())["payload"], "null");
    let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], b"[\"echo\", 1, 5, null, null, null, null, null]");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("line 1: it is not a JSON object"), "{said:?}");
}

#[test]
fn a_type_that_nothing_serves_can_be_forced() {
    let home = home();
    let id = home.enqueue("later", "{}", &["--force"]);
    assert_eq!(home.show(&id)["type"], "later");
}

#[test]
fn the_error_of_a_guest_cannot_control_the_terminal() {
    let home = home();
    home.plugin("nul", "nul");
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "nul", r#"{"in": "fatal"}"#, "--wait=100s"]);
    assert_eq!(said.code, 100, "{said:?}");
    assert!(said.stderr.contains("is dead: a"), "{said:?}");
    assert!(!said.stderr.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
    daemon.stop();
}

#[test]
fn an_endless_payload_is_refused() {
    let home = Home::new("");
    let said = home.jobq(&["enqueue", "echo", "@/dev/zero", "--force"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("more than the 1048576 bytes that `queue.max_payload` allows"), "{said:?}");
}
