//! Other programs that write to the same database.

use std::time::{Duration, Instant};

use crate::home::{Home, eventually};

#[test]
fn a_plain_insert_is_a_complete_enqueue() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let daemon = home.daemon();
    home.await_plugin("echo", "serving");
    home.sql()
        .execute("INSERT INTO jobs (type, payload) VALUES ('echo', '{\"n\": 12345678901234567890}')", [])
        .unwrap();
    eventually("the job to complete", || {
        (home.count("SELECT count(*) FROM jobs WHERE status = 'completed' AND result = payload AND attempts = 1") == 1)
            .then_some(())
    });
    daemon.stop();
}

#[test]
fn a_writer_that_holds_the_lock_for_ten_seconds_costs_time_and_nothing_else() {
    let home = Home::new("[worker]\nlease = \"4s\"\n");
    home.plugin("sleep", "sleep");
    let mut daemon = home.daemon();
    home.await_plugin("sleep", "serving");
    let ids: Vec<String> = (0..6).map(|_| home.enqueue("sleep", r#"{"ms": 1000}"#, &[])).collect();
    home.await_status(&ids[0], "running");
    let foreign = home.sql();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = Instant::now();
    daemon.await_line("waiting for another process");
    while locked.elapsed() < Duration::from_secs(10) {
        assert_eq!(home.jobq(&["status"]).code, 0, "readers go on");
        std::thread::sleep(Duration::from_millis(500));
    }
    foreign.execute_batch("COMMIT").unwrap();
    for id in &ids {
        let job = home.await_status(id, "completed");
        assert_eq!(
            job["attempts_log"].as_array().unwrap().len(),
            1,
            "the leases were not judged by who held them: {job}"
        );
    }
    daemon.stop();
}

#[test]
fn payloads_that_are_no_utf_8_end_their_job_and_hurt_nobody() {
    let home = Home::new("[defaults]\nmax_attempts = 1\n");
    home.plugin("echo", "echo");
    let daemon = home.daemon();
    let bad = "INSERT INTO jobs (id, type, payload) VALUES ('bad', 'echo', CAST(x'22ff22' AS TEXT))";
    let good = "INSERT INTO jobs (id, type, payload) VALUES ('good', 'echo', '1')";
    let sql = home.sql();
    sql.execute(bad, []).unwrap();
    sql.execute(good, []).unwrap();
    home.await_status("good", "completed");
    assert!(home.await_status("bad", "dead")["error"].as_str().unwrap().contains("UTF-8"));
    daemon.stop();
}
