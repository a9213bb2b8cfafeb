//! What the daemon's log says about jobs.

use std::process::Stdio;

use serde_json::Value;

use crate::home::{Home, eventually};

const FATAL: &str = r#"{"do": "fatal", "message": "no such account\n\u001b[31msecond line"}"#;

fn lines(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_dead_job_is_a_warning_and_a_failed_attempt_is_not() {
    let home = Home::new("[defaults]\nbackoff = { base = \"1h\" }\n");
    home.plugin("answers", "answers");
    let mut daemon = home.daemon();
    let dead = home.enqueue("answers", FATAL, &[]);
    let line = daemon.await_line(&format!("job is dead job={dead}"));
    for part in [" WARN ", "type=answers", "attempt=1", "outcome=failed", "digest=", "error=\"no such account\""] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let failed = home.enqueue("answers", r#"{"do": "retry", "message": "\u001b[31mred\u0007"}"#, &[]);
    let line = daemon.await_line(&format!("attempt failed, retry scheduled job={failed}"));
    for part in [" INFO ", "type=answers", "attempt=1", "retry_at=", "error=\"[31mred\""] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!daemon.log().chars().any(|c| c.is_control() && c != '\n'), "{}", daemon.log());
    daemon.stop();
}

#[test]
fn a_flood_of_dead_jobs_is_counted() {
    let home = Home::new("[defaults]\nmax_attempts = 1\n");
    home.plugin("answers", "answers");
    home.enqueue("answers", FATAL, &[]);
    let flood = "{\"type\": \"answers\", \"payload\": {\"do\": \"fatal\", \"message\": \"m\"}}\n".repeat(400);
    assert_eq!(home.jobq_with_input(&["enqueue", "--bulk", "-"], flood.as_bytes()).code, 0);
    let mut daemon = home.daemon();
    eventually("all to be dead", || {
        (home.count("SELECT count(*) FROM jobs WHERE status = 'dead'") == 401).then_some(())
    });
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
    let log = daemon.log();
    let single = lines(&log, "job is dead");
    let counted: usize = log
        .lines()
        .filter_map(|line| line.split_once(" more jobs of `answers` died in the last second"))
        .map(|(before, _)| before.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
        .sum();
    assert_eq!(single + counted, 401, "{log}");
    assert!(counted > 0 && single < 400, "{log}");
}

#[test]
fn json_is_an_object_a_line() {
    let home = Home::new("[worker]\nshutdown_grace = \"1s\"\n");
    home.plugin("answers", "answers");
    let id = home.enqueue("answers", FATAL, &[]);
    let output = home.command(&["run", "--drain", "--log-format", "json"]).stderr(Stdio::piped()).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(["timestamp", "level", "message"].iter().all(|field| line[field].is_string()), "{line}");
    }
    let dead = lines.iter().find(|line| line["message"] == "job is dead").unwrap();
    let expected = (&"WARN".into(), &Value::from(id), &Value::from("answers"), &Value::from("no such account"));
    assert_eq!((&dead["level"], &dead["job"], &dead["type"], &dead["error"]), expected);
    assert!(lines.iter().any(|line| line["message"].as_str().unwrap().contains("is ready")), "{log}");

    home.configure("[worker]\nleese = \"15s\"\n");
    let run = home.command(&["run"]).env("JOBQ_LOG_FORMAT", "json").stderr(Stdio::piped()).output().unwrap();
    let error: Value = serde_json::from_slice(&run.stderr).unwrap();
    assert_eq!(error["level"], "ERROR");
    assert!(error["message"].as_str().unwrap().contains("leese"), "{error}");
}

#[test]
fn a_shutdown_says_what_it_waits_for_and_what_it_stops() {
    let home = Home::new("[worker]\nshutdown_grace = \"1s\"\n");
    home.plugin("spin", "spin");
    let id = home.enqueue("spin", "{}", &[]);
    let mut daemon = home.daemon();
    home.await_status(&id, "running");
    eventually("it to run", || (home.count("SELECT coalesce(sum(busy), 0) FROM jobs__daemons") == 1).then_some(()));
    daemon.signal("TERM");
    daemon.await_line(&format!("the shutdown waits for 1 running attempt: `spin` {id} for "));
    daemon.await_line(&format!("stopping 1 running attempt: `spin` {id} for "));
    assert!(daemon.await_end().success());
    assert!(daemon.log().contains(&format!("running job stopped and given back job={id}")), "{}", daemon.log());
}

#[test]
fn rescues_and_deletions_are_logged() {
    let home = Home::new("[defaults]\ntimeout = \"1h\"\nmax_attempts = 1\n");
    home.plugin("spin", "spin");
    let id = home.enqueue("spin", "{}", &[]);
    let daemon = home.daemon();
    home.await_status(&id, "running");
    eventually("it to run", || (home.count("SELECT coalesce(sum(busy), 0) FROM jobs__daemons") == 1).then_some(()));
    daemon.kill();
    let mut daemon = home.daemon();
    let line = daemon.await_line("job rescued: its attempt was lost");
    for part in [" WARN ", &format!("job={id}"), "type=spin", "outcome=lost", "status=dead"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    daemon.stop();
    home.configure("[retention]\ndead = \"1h\"\n");
    home.sql().execute("UPDATE jobs SET completed_at = completed_at - 7200000", []).unwrap();
    let mut daemon = home.daemon();
    daemon.await_line("finished jobs deleted after their retention time jobs=1");
    daemon.stop();
}
