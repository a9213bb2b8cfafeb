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
fn a_writer_that_holds_the_lock_for_ten_seconds_only_costs_time() {
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
        assert_eq!(home.jobq(&["status"]).code, 0, "readers are not blocked");
        std::thread::sleep(Duration::from_millis(500));
    }
    foreign.execute_batch("COMMIT").unwrap();
    for id in &ids {
        let job = home.await_status(id, "completed");
        assert_eq!(job["attempts_log"].as_array().unwrap().len(), 1, "no lease was rescued by its own holder: {job}");
    }
    daemon.stop();
}

#[test]
fn a_payload_that_is_not_utf_8_only_ends_its_own_job() {
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

#[test]
fn a_job_whose_token_was_set_back_does_not_block_others() {
    let home = Home::new("[worker]\nlease = \"1s\"\n[defaults]\nmax_attempts = 1\n");
    home.plugin("sleep", "sleep");
    let daemon = home.daemon();
    let set_back = home.enqueue("sleep", r#"{"ms": 0}"#, &[]);
    home.await_status(&set_back, "completed");
    let restore = format!(
        "UPDATE jobs SET status = 'pending', completed_at = NULL, lease = 0, payload = '{{\"ms\": 60000}}' WHERE id = '{set_back}'"
    );
    home.sql().execute(&restore, []).unwrap();
    let healthy = home.enqueue("sleep", r#"{"ms": 60000}"#, &[]);
    home.await_status(&set_back, "running");
    home.await_status(&healthy, "running");
    daemon.kill();
    let daemon = home.daemon();
    home.await_status(&healthy, "dead");
    let job = home.await_status(&set_back, "dead");
    assert_eq!(job["attempts_log"].as_array().unwrap().len(), 1, "its token's entry was replaced");
    daemon.stop();
}

#[test]
fn deleting_the_database_ends_the_daemon_with_an_error() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut daemon = home.daemon();
    home.enqueue("echo", "1", &["--wait=100s"]);
    for name in ["jobq.db", "jobq.db-wal", "jobq.db-shm"] {
        _ = std::fs::remove_file(home.path(name));
    }
    assert_eq!(daemon.await_end().code(), Some(1));
    assert!(daemon.log().contains("was deleted or replaced"), "{}", daemon.log());
}

#[test]
fn deleting_the_write_ahead_log_ends_the_daemon_too() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut daemon = home.daemon();
    home.enqueue("echo", "1", &["--wait=100s"]);
    // The daemon must have seen the file once before it is deleted.
    eventually("the daemon to have looked", || {
        (home.count("SELECT count(*) FROM jobs__daemons WHERE seen_at > started_at") > 0).then_some(())
    });
    for name in ["jobq.db-wal", "jobq.db-shm"] {
        _ = std::fs::remove_file(home.path(name));
    }
    assert_eq!(daemon.await_end().code(), Some(1));
    assert!(daemon.log().contains("jobq.db-wal` was deleted or replaced"), "{}", daemon.log());
}

/// A process that opens the database after that creates another index, and doesn't see what the daemon does.
#[test]
fn deleting_the_shared_memory_file_loses_no_acknowledged_job() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut daemon = home.daemon();
    home.enqueue("echo", "1", &["--wait=100s"]);
    std::fs::remove_file(home.path("jobq.db-shm")).unwrap();
    let acknowledged: Vec<String> = (0..20).map(|_| home.enqueue("echo", "2", &[])).collect();
    assert_eq!(daemon.await_end().code(), Some(1));
    assert!(daemon.log().contains("jobq.db-shm` was deleted or replaced"), "{}", daemon.log());
    let daemon = home.daemon();
    for id in &acknowledged {
        home.await_status(id, "completed");
    }
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 21);
    daemon.stop();
}

#[test]
fn copying_a_backup_over_the_open_file_ends_the_daemon() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut daemon = home.daemon();
    home.enqueue("echo", "1", &["--wait=100s"]);
    home.sql().execute("VACUUM INTO ?1", [home.path("backup.db").to_str().unwrap()]).unwrap();
    let lines = "{\"type\": \"echo\", \"payload\": 2}\n".repeat(3000);
    assert_eq!(home.jobq_with_input(&["enqueue", "--bulk", "-"], lines.as_bytes()).code, 0);
    eventually("all to complete", || {
        (home.count("SELECT count(*) FROM jobs WHERE status = 'completed'") == 3001).then_some(())
    });
    // In another process, because closing a descriptor of the file would drop this process's locks.
    let copied =
        std::process::Command::new("cp").args([home.path("backup.db"), home.path("jobq.db")]).status().unwrap();
    assert!(copied.success());
    assert_eq!(daemon.await_end().code(), Some(1));
    let log = daemon.log();
    assert!(log.contains("is damaged") || log.contains("was deleted or replaced"), "{log}");
}

#[test]
fn a_start_that_waits_for_another_process_says_so() {
    for lock in ["PRAGMA journal_mode = wal; PRAGMA locking_mode = exclusive; BEGIN EXCLUSIVE", "BEGIN EXCLUSIVE"] {
        let home = Home::new("");
        let foreign = home.sql();
        foreign.execute_batch("CREATE TABLE customers (name)").unwrap();
        foreign.execute_batch(lock).unwrap();
        let mut daemon = home.spawn();
        daemon.await_line("waiting for another process that holds the database");
        drop(foreign);
        daemon.await_line("ready");
        daemon.stop();
    }
}

#[test]
fn guests_that_hang_in_the_file_system_cost_others_no_lease() {
    let settings = "[worker]\nlease = \"1s\"\nconcurrency = 120\n[jobs.files]\nmax_attempts = 1\ntimeout = \"200ms\"\n\
        concurrency = 110\ndirs = [{ host = \"in\", guest = \"/in\" }]\n";
    let home = Home::new(settings);
    std::fs::create_dir(home.path("in")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(home.path("in/fifo")).status().unwrap();
    assert!(made.success());
    home.plugin("files", "files").plugin("sleep", "sleep");
    let daemon = home.daemon();
    home.await_plugin("files", "serving");
    home.await_plugin("sleep", "serving");
    let read = "{\"type\": \"files\", \"payload\": [{\"op\": \"read\", \"path\": \"/in/fifo\"}]}\n".repeat(600);
    assert_eq!(home.jobq_with_input(&["enqueue", "--bulk", "-"], read.as_bytes()).code, 0);
    let ended = "SELECT count(*) FROM jobs WHERE type = 'files' AND status = 'dead'";
    eventually("all to have timed out", || (home.count(ended) == 600).then_some(()));
    let honest = home.enqueue("sleep", r#"{"ms": 3000}"#, &[]);
    let job = home.await_status(&honest, "completed");
    assert_eq!(job["attempts_log"].as_array().unwrap().len(), 1, "its lease was always renewed: {job}");
    daemon.kill();
}
