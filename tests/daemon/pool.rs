//! Order, priorities, concurrency, and several daemons on one queue (I2, I3, I4, I7).

use crate::home::{Home, eventually};

fn bulk(home: &Home, lines: impl IntoIterator<Item = String>) {
    let text = lines.into_iter().collect::<Vec<_>>().join("\n");
    let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], text.as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
}

fn await_all_completed(home: &Home) {
    eventually("all to complete", || {
        (home.count("SELECT count(*) FROM jobs WHERE status != 'completed'") == 0).then_some(())
    });
}

#[test]
fn a_mixed_batch_starts_by_priority_then_insertion() {
    let home = Home::new("[worker]\nconcurrency = 1\n");
    home.plugin("sleep", "sleep");
    let line =
        |priority: &i64| format!("{{\"type\": \"sleep\", \"priority\": {priority}, \"payload\": {{\"ms\": 5}}}}");
    bulk(&home, [0, 5, -3, 5, 0, 9, -3, 9].iter().map(line));
    let daemon = home.daemon();
    await_all_completed(&home);
    daemon.stop();
    let sql = home.sql();
    let query = "SELECT a.started_at FROM jobs JOIN jobs__attempts a USING (seq) ORDER BY priority DESC, seq";
    let starts: Vec<i64> =
        sql.prepare(query).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

#[test]
fn a_job_does_not_start_before_its_time() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "echo", "1", "--in", "1500ms", "--wait=100s"]);
    assert_eq!(said.stdout, "1\n");
    let early = "SELECT count(*) FROM jobs WHERE started_at < scheduled_at OR scheduled_at < created_at + 1500";
    assert_eq!(home.count(early), 0);
    daemon.stop();
}

#[test]
fn a_type_keeps_its_concurrency_limit_while_others_run() {
    let home = Home::new("[worker]\nconcurrency = 4\n[jobs.sleep]\nconcurrency = 1\n");
    home.plugin("sleep", "sleep").plugin("echo", "echo");
    let daemon = home.daemon();
    home.await_plugin("sleep", "serving");
    home.await_plugin("echo", "serving");
    let sleep = "{\"type\": \"sleep\", \"payload\": {\"ms\": 1000}}".to_owned();
    let echo = |n| format!("{{\"type\": \"echo\", \"payload\": {n}}}");
    bulk(&home, std::iter::repeat_n(sleep, 4).chain((0..20).map(echo)));
    await_all_completed(&home);
    daemon.stop();
    let beside_a_sleep = |job_type| {
        home.count(&format!(
            "SELECT count(*) FROM jobs__attempts a JOIN jobs ja USING (seq) JOIN jobs__attempts b JOIN jobs jb ON jb.seq = b.seq \
             WHERE ja.type = 'sleep' AND jb.type = '{job_type}' AND a.seq != b.seq \
             AND b.started_at BETWEEN a.started_at AND a.started_at + a.duration_ms - 20"
        ))
    };
    assert_eq!(beside_a_sleep("sleep"), 0);
    assert!(beside_a_sleep("echo") > 0, "other types did not wait for them");
}

#[test]
fn two_daemons_on_one_file_run_each_job_once() {
    let home = Home::new("[worker]\nconcurrency = 2\n");
    home.plugin("sleep", "sleep");
    let (one, two) = (home.daemon(), home.daemon());
    bulk(&home, (0..200).map(|_| "{\"type\": \"sleep\", \"payload\": {\"ms\": 10}}".to_owned()));
    await_all_completed(&home);
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE attempts = 1"), 200);
    assert_eq!(home.count("SELECT count(*) FROM jobs__attempts WHERE outcome = 'completed'"), 200);
    assert_eq!(home.count("SELECT count(*) FROM jobs__attempts"), 200);
    assert_eq!(home.count("SELECT count(DISTINCT worker) FROM jobs"), 2, "both have run jobs");
    one.stop();
    two.stop();
}

#[test]
fn follow_ups_are_added_with_the_completion_or_not_at_all() {
    let home = Home::new("[jobs.follow]\nenqueue = [\"echo\"]\nmax_attempts = 1\n");
    home.plugin("follow", "follow").plugin("echo", "echo");
    let daemon = home.daemon();
    let jobs = r#""jobs": [{"type": "echo", "payload": "[7]"}]"#;
    let said = home.jobq(&["enqueue", "follow", &format!("{{{jobs}, \"then\": \"fatal\"}}"), "--wait=100s"]);
    assert_eq!(said.code, 100, "{said:?}");
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 1, "a failed attempt enqueues nothing");
    let said = home.jobq(&["enqueue", "follow", &format!("{{{jobs}}}"), "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    let ids: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let child = ids[0]["id"].as_str().unwrap();
    assert_eq!(home.await_status(child, "completed")["result"], "[7]");
    daemon.stop();
}

#[test]
fn logs_and_progress_are_visible_while_the_job_runs() {
    let home = Home::new("[defaults]\ntimeout = \"1h\"\n");
    home.plugin("polite", "polite").plugin("program", "program");
    let daemon = home.daemon();
    let reports = home.enqueue("polite", "{}", &[]);
    let writes = home.enqueue("program", r#"{"stderr": "half of it\n", "sleep_ms": 3000000}"#, &[]);
    eventually("progress", || Some(home.show(&reports)).filter(|job| job["progress"]["percent"].is_number()));
    eventually("its log", || home.jobq(&["logs", &writes]).stdout.contains("half of it").then_some(()));
    for id in [reports, writes] {
        assert_eq!(home.show(&id)["status"], "running");
    }
    daemon.kill();
}

#[test]
fn finished_jobs_are_deleted_after_their_retention_and_others_are_kept() {
    let home = Home::new("[retention]\ncompleted = \"1s\"\ndead = \"off\"\n");
    home.plugin("answers", "answers");
    let daemon = home.daemon();
    let dead = home.enqueue("answers", r#"{"do": "fatal", "message": "m"}"#, &[]);
    home.await_status(&dead, "dead");
    let done = home.enqueue("answers", r#"{"do": "ok"}"#, &[]);
    home.await_status(&done, "completed");
    home.sql().execute("UPDATE jobs SET completed_at = completed_at - 86400000", []).unwrap();
    daemon.stop();
    let daemon = home.daemon();
    eventually("the completed job to be deleted", || (home.jobq(&["show", &done]).code == 3).then_some(()));
    assert_eq!(home.show(&dead)["status"], "dead");
    assert_eq!(home.count("SELECT count(*) FROM jobs__attempts"), 1, "its attempts were deleted too");
    daemon.stop();
}

#[test]
fn jobs_claimed_ahead_of_a_long_job_are_given_back_without_a_trace() {
    let home = Home::new("[worker]\nconcurrency = 1\n");
    home.plugin("sleep", "sleep");
    let line = |ms: u32| format!("{{\"type\": \"sleep\", \"payload\": {{\"ms\": {ms}}}}}");
    bulk(&home, (0..300).map(|n| line(if n == 200 { 600_000 } else { 0 })));
    let daemon = home.daemon();
    let done = "SELECT count(*) FROM jobs WHERE status = 'completed'";
    eventually("the long job to be reached", || (home.count(done) == 200).then_some(()));
    let running = "SELECT count(*) FROM jobs WHERE status = 'running'";
    eventually("all others to be given back", || (home.count(running) == 1).then_some(()));
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending' AND attempts = 0"), 99);
    assert_eq!(home.count("SELECT count(*) FROM jobs__attempts"), 200, "no attempt was recorded for them");
    daemon.kill();
}
