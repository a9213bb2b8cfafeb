//! Limits: which outcome the daemon records and what happens to the job (I6, I9).

use crate::home::Home;

#[test]
fn loops_are_stopped_and_other_types_run_meanwhile() {
    let home =
        Home::new("[worker]\nconcurrency = 4\n[jobs.spin]\ntimeout = \"1s\"\nmax_attempts = 1\nconcurrency = 3\n");
    home.plugin("spin", "spin").plugin("echo", "echo");
    let daemon = home.daemon();
    let loops: Vec<String> = (0..3).map(|_| home.enqueue("spin", "{}", &[])).collect();
    home.await_status(&loops[0], "running");
    let said = home.jobq(&["enqueue", "echo", "1", "--wait=100s"]);
    assert_eq!(said.stdout, "1\n");
    for id in loops {
        let job = home.await_status(&id, "dead");
        assert_eq!(job["attempts_log"][0]["outcome"], "timed_out");
        assert!(job["attempts_log"][0]["duration_ms"].as_i64().unwrap() >= 1000);
    }
    daemon.stop();
}

#[test]
fn an_outcome_listed_in_dead_on_is_final_at_once() {
    let home = Home::new("[defaults]\nfuel = 1000000\ndead_on = [\"out_of_fuel\"]\n");
    home.plugin("spin", "spin");
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "spin", "{}", "--wait=100s"]);
    assert_eq!(said.code, 100, "{said:?}");
    let id = said.stderr.lines().next().unwrap();
    let job = home.show(id);
    assert_eq!((job["attempts"].as_i64(), job["attempts_log"][0]["outcome"].as_str()), (Some(1), Some("out_of_fuel")));
    daemon.stop();
}

#[test]
fn a_job_can_have_its_own_timeout() {
    let home = Home::new("[defaults]\nmax_attempts = 1\n");
    home.plugin("spin", "spin");
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "spin", "{}", "--timeout", "300ms", "--wait=100s"]);
    assert_eq!(said.code, 100, "{said:?}");
    assert!(said.stderr.contains("300ms"), "{said:?}");
    daemon.stop();
}

#[test]
fn every_result_of_a_handler_has_its_documented_effect() {
    let home = Home::new("[defaults]\nbackoff = { base = \"1h\", max = \"1h\", jitter = 0.0 }\n");
    home.plugin("answers", "answers");
    let daemon = home.daemon();
    let run =
        |what: &str| home.enqueue("answers", &format!("{{\"do\": {what:?}, \"message\": \"m\", \"ms\": 60000}}"), &[]);
    let (ok, retry, later, fatal, snooze) = (run("ok"), run("retry"), run("retry-after"), run("fatal"), run("snooze"));
    let attempt = |job: &serde_json::Value| job["attempts_log"][0]["outcome"].as_str().unwrap().to_owned();
    assert_eq!(attempt(&home.await_status(&ok, "completed")), "completed");
    let job = home.await_status(&retry, "failed");
    assert_eq!((attempt(&job), job["error"].as_str(), job["attempts"].as_i64()), ("failed".into(), Some("m"), Some(1)));
    assert_eq!(attempt(&home.await_status(&later, "failed")), "failed");
    assert_eq!(attempt(&home.await_status(&fatal, "dead")), "failed");
    let snoozed = crate::home::eventually("the snooze", || {
        Some(home.show(&snooze)).filter(|job| !job["attempts_log"].as_array().unwrap().is_empty())
    });
    assert_eq!((snoozed["status"].as_str(), snoozed["attempts"].as_i64()), (Some("pending"), Some(0)));
    assert_eq!(attempt(&snoozed), "snoozed");
    let delay = |id: &str| home.count(&format!("SELECT scheduled_at - started_at FROM jobs WHERE id = '{id}'"));
    assert!(delay(&retry) >= 3_600_000);
    assert!((60_000..3_600_000).contains(&delay(&later)));
    assert!((60_000..3_600_000).contains(&delay(&snooze)));
    daemon.stop();
}
