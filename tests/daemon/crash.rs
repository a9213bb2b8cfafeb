//! What a killed daemon leaves behind, and what the next one makes of it (I1, I3, I4).

use crate::home::{Home, eventually};

const SHORT_LEASE: &str = "[worker]\nlease = \"1s\"\n[defaults]\nbackoff = { base = \"0s\", max = \"0s\" }\n";

#[test]
fn a_job_of_a_killed_daemon_is_lost_after_its_lease_and_runs_again() {
    let home = Home::new(SHORT_LEASE);
    home.plugin("sleep", "sleep");
    let daemon = home.daemon();
    let id = home.enqueue("sleep", r#"{"ms": 60000}"#, &[]);
    let bystander = home.enqueue("sleep", r#"{"ms": 0}"#, &["--in", "1h"]);
    home.await_status(&id, "running");
    daemon.kill();
    let left = home.show(&id);
    assert_eq!(left["status"], "running", "nobody has judged it yet");

    let _next = home.daemon();
    let job = eventually("the job to run again", || {
        Some(home.show(&id)).filter(|job| job["attempts_log"].as_array().unwrap().len() == 1)
    });
    let lost = &job["attempts_log"][0];
    assert_eq!((lost["outcome"].as_str(), lost["number"].as_i64()), (Some("lost"), Some(1)));
    assert_eq!(job["attempts"], 1);
    let again = home.await_status(&id, "running");
    assert!(again["lease"].as_i64() > left["lease"].as_i64(), "the token only grows");
    assert_eq!(home.show(&bystander)["status"], "pending");
}

#[test]
fn a_job_that_takes_every_daemon_down_with_it_is_dead_in_the_end() {
    let home = Home::new(SHORT_LEASE);
    home.plugin("sleep", "sleep").plugin("echo", "echo");
    let pill = home.enqueue("sleep", r#"{"ms": 60000}"#, &["--max-attempts", "2"]);
    for lease in 1..=2 {
        let daemon = home.daemon();
        eventually("the next attempt", || {
            Some(home.show(&pill)).filter(|job| job["status"] == "running" && job["lease"] == lease)
        });
        daemon.kill();
    }
    let daemon = home.daemon();
    let job = home.await_status(&pill, "dead");
    assert_eq!(job["attempts"], 2);
    assert!(job["error"].as_str().unwrap().contains("lease"), "{job}");
    let said = home.jobq(&["enqueue", "echo", "1", "--wait=100s"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "the others run");
    daemon.stop();
}

#[test]
fn jobs_that_were_acknowledged_survive_a_kill_under_load_and_run_to_their_end() {
    let home = Home::new(SHORT_LEASE);
    home.plugin("echo", "echo");
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let daemon = home.daemon();
        let lines: String =
            (0..200).map(|n| format!("{{\"type\": \"echo\", \"payload\": [{round}, {n}]}}\n")).collect();
        let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], lines.as_bytes());
        acknowledged.extend(said.stdout.lines().map(str::to_owned));
        eventually("some to complete", || {
            (home.count("SELECT count(*) FROM jobs WHERE status = 'completed'") > 0).then_some(())
        });
        daemon.kill();
    }
    let daemon = home.daemon();
    eventually("all to complete", || {
        (home.count("SELECT count(*) FROM jobs WHERE status NOT IN ('completed')") == 0).then_some(())
    });
    daemon.stop();
    assert_eq!(acknowledged.len(), 600);
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 600, "none lost, none invented");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE result IS NOT payload"), 0);
    let twice = "SELECT count(*) FROM (SELECT seq FROM jobs__attempts WHERE outcome = 'completed' GROUP BY seq HAVING count(*) > 1)";
    assert_eq!(home.count(twice), 0, "none completed twice");
    let integrity: String = home.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
}
