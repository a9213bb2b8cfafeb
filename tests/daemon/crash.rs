//! What a killed daemon leaves behind, and how other daemons recover it (I1, I3, I4).

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::home::{Daemon, Home, eventually};

/// With leases this long, none expires during a test.
const LONG_LEASE: &str = "[worker]\nlease = \"1h\"\n[defaults]\nbackoff = { base = \"0s\", max = \"0s\" }\n";

const SHORT_LEASE: &str = "[worker]\nlease = \"1s\"\n[defaults]\nbackoff = { base = \"0s\", max = \"0s\" }\n";

/// The name of the daemon that has claimed a job.
fn worker(home: &Home, id: &str) -> String {
    home.sql().query_row("SELECT worker FROM jobs WHERE id = ?1", [id], |row| row.get(0)).unwrap()
}

/// The outcomes of a job's attempts.
fn outcomes(home: &Home, id: &str) -> Vec<String> {
    let attempts = home.show(id)["attempts_log"].as_array().unwrap().clone();
    attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap().to_owned()).collect()
}

fn await_lost(home: &Home, id: &str, times: usize) {
    eventually("the attempt to be recorded as lost", || (outcomes(home, id) == vec!["lost"; times]).then_some(()));
}

fn bulk(home: &Home, lines: impl IntoIterator<Item = String>) {
    let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], lines.into_iter().collect::<String>().as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
}

/// Stops all threads of a daemon, but not while it holds the database lock.
fn freeze(home: &Home, daemon: &Daemon) {
    eventually("the daemon to be stopped without the lock", || {
        daemon.signal("STOP");
        eventually("its threads to stop", || {
            let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
            let is_stopped =
                |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).unwrap().contains(") T ");
            tasks.map(Result::unwrap).all(is_stopped).then_some(())
        });
        let sql = home.sql();
        sql.busy_timeout(Duration::ZERO).unwrap();
        let free = sql.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
        if !free {
            daemon.signal("CONT");
        }
        free.then_some(())
    });
}

/// The files of daemons beside the database.
fn worker_files(home: &Home) -> Vec<fs::DirEntry> {
    let entries = fs::read_dir(home.path("")).unwrap().map(Result::unwrap);
    entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with("jobq.db-jobq-jobs-")).collect()
}

#[test]
fn a_job_of_a_killed_daemon_runs_again_at_once_despite_its_lease() {
    let home = Home::new(LONG_LEASE);
    home.plugin("sleep", "sleep");
    let daemon = home.daemon();
    let id = home.enqueue("sleep", r#"{"ms": 60000}"#, &[]);
    let unrelated = home.enqueue("sleep", r#"{"ms": 0}"#, &["--in", "1h"]);
    home.await_status(&id, "running");
    daemon.kill();
    let left = home.show(&id);
    assert_eq!(left["status"], "running", "no daemon has rescued it yet");

    let next = home.daemon();
    await_lost(&home, &id, 1);
    let job = home.await_status(&id, "running");
    let lost = &job["attempts_log"][0];
    assert_eq!((lost["attempt"].as_i64(), job["attempts"].as_i64()), (Some(1), Some(1)));
    assert!(lost["error"].as_str().unwrap().contains("died"), "{job}");
    assert!(job["lease"].as_i64() > left["lease"].as_i64(), "the token only grows");
    assert_eq!(home.show(&unrelated)["status"], "pending");
    assert_eq!(worker_files(&home).len(), 1, "that of the daemon that runs");
    home.jobq(&["cancel", &id]);
    next.stop();
    assert_eq!(worker_files(&home).len(), 0);
}

#[test]
fn another_running_daemon_takes_over_at_once() {
    let home = Home::new(LONG_LEASE);
    home.plugin("sleep", "sleep");
    let daemon = home.daemon();
    let id = home.enqueue("sleep", r#"{"ms": 60000}"#, &[]);
    home.await_status(&id, "running");
    let owner = worker(&home, &id);
    let _other = home.daemon();
    daemon.kill();
    await_lost(&home, &id, 1);
    home.await_status(&id, "running");
    assert_ne!(worker(&home, &id), owner);
}

#[test]
fn a_frozen_daemon_is_not_taken_for_dead() {
    let home = Home::new(LONG_LEASE);
    home.configure(&format!("{LONG_LEASE}timeout = \"1h\"\n").replace("[worker]", "[worker]\nconcurrency = 1"));
    home.plugin("sleep", "sleep");
    let frozen = home.daemon();
    let id = home.enqueue("sleep", r#"{"ms": 3000000}"#, &[]);
    let before = home.await_status(&id, "running");
    freeze(&home, &frozen);
    let other = home.enqueue("sleep", r#"{"ms": 3000000}"#, &["--max-attempts", "9"]);
    for lost in 0..3 {
        // A daemon that rescues this job has checked all daemons.
        let daemon = home.daemon();
        await_lost(&home, &other, lost);
        home.await_status(&other, "running");
        daemon.kill();
    }
    let after = home.show(&id);
    for field in ["status", "lease", "attempts"] {
        assert_eq!(after[field], before[field], "{after}");
    }
    frozen.signal("CONT");
    for job in [&id, &other] {
        assert_eq!(home.jobq(&["cancel", job]).code, 0);
    }
    assert_eq!(outcomes(&home, &id), ["cancelled"]);
    frozen.stop();
}

#[test]
fn the_job_of_a_frozen_daemon_waits_for_its_lease_and_its_late_outcome_is_refused() {
    let home = Home::new(SHORT_LEASE);
    home.plugin("sleep", "sleep");
    let mut frozen = home.daemon();
    let id = home.enqueue("sleep", r#"{"ms": 1000}"#, &[]);
    home.await_status(&id, "running");
    freeze(&home, &frozen);
    let other = home.daemon();
    home.await_status(&id, "completed");
    assert_eq!(outcomes(&home, &id), ["lost", "completed"]);
    let before = home.show(&id);
    let error = before["attempts_log"][0]["error"].as_str().unwrap();
    assert!(error.contains("stopped renewing"), "{error}");
    frozen.signal("CONT");
    frozen.signal("TERM");
    assert!(frozen.await_end().success());
    other.stop();
    assert_eq!(home.show(&id), before);
}

#[test]
fn a_job_that_kills_every_daemon_is_dead_after_its_attempts() {
    let home = Home::new(LONG_LEASE);
    home.plugin("sleep", "sleep").plugin("echo", "echo");
    let job_id = home.enqueue("sleep", r#"{"ms": 60000}"#, &["--max-attempts", "2"]);
    for lease in 1..=2 {
        let daemon = home.daemon();
        eventually("the next attempt", || {
            Some(home.show(&job_id)).filter(|job| job["status"] == "running" && job["lease"] == lease)
        });
        daemon.kill();
    }
    let daemon = home.daemon();
    let job = home.await_status(&job_id, "dead");
    assert_eq!(job["attempts"], 2);
    assert!(job["error"].as_str().unwrap().contains("died"), "{job}");
    let said = home.jobq(&["enqueue", "echo", "1", "--wait=100s"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "other jobs run");
    daemon.stop();
}

#[test]
fn acknowledged_jobs_survive_kills_under_load_and_complete() {
    let home = Home::new(LONG_LEASE);
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
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 600, "none lost, none added");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE result IS NOT payload"), 0);
    let twice = "SELECT count(*) FROM (SELECT seq FROM jobs__attempts WHERE outcome = 'completed' GROUP BY seq HAVING count(*) > 1)";
    assert_eq!(home.count(twice), 0, "none completed twice");
    let integrity: String = home.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
}

#[test]
fn jobs_claimed_ahead_lose_no_attempt_with_their_daemon() {
    let home = Home::new(&LONG_LEASE.replace("[worker]", "[worker]\nconcurrency = 1"));
    home.plugin("sleep", "sleep");
    let line = |ms: u32| format!("{{\"type\": \"sleep\", \"payload\": {{\"ms\": {ms}}}, \"max_attempts\": 1}}\n");
    let running = "SELECT count(*) FROM jobs WHERE status = 'running'";
    let (daemon, long) = claimed_ahead(&home, &line);
    daemon.kill();
    let ahead = home.count(running) - 1;
    let next = home.daemon();
    eventually("all to end", || {
        (home.count("SELECT count(*) FROM jobs WHERE completed_at IS NULL") == 0).then_some(())
    });
    next.stop();
    assert!(ahead > 0);
    let dead: String =
        home.sql().query_row("SELECT group_concat(seq) FROM jobs WHERE status = 'dead'", [], |row| row.get(0)).unwrap();
    assert_eq!(dead, long.to_string(), "the one whose guest had started");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status NOT IN ('completed', 'cancelled')"), 1);
    let attempts = "SELECT count(*) FROM jobs__attempts JOIN jobs USING (seq) WHERE status != 'cancelled'";
    assert_eq!(home.count(attempts), home.count("SELECT count(*) FROM jobs WHERE status != 'cancelled'"), "one each");
}

/// A frozen daemon whose only slot runs the returned job, and that has claimed more jobs of the type ahead.
fn claimed_ahead(home: &Home, line: &dyn Fn(u32) -> String) -> (Daemon, i64) {
    let daemon = home.daemon();
    loop {
        // Short jobs make the daemon claim ahead. Those behind the long job wait for a moment.
        let shorts = || (0..200).map(|_| line(0));
        bulk(home, shorts().chain([line(60_000)]).chain(shorts()));
        let long = home.count("SELECT max(seq) FROM jobs WHERE payload LIKE '%60000%'");
        eventually("the long one to run", || {
            (home.count(&format!("SELECT count(*) FROM jobs WHERE seq = {long} AND status = 'running'")) > 0)
                .then_some(())
        });
        freeze(home, &daemon);
        let started = format!("SELECT count(*) FROM jobs WHERE status = 'running' AND seq < {long}");
        let ahead = format!("SELECT count(*) FROM jobs WHERE status = 'running' AND seq > {long}");
        if home.count(&started) == 0 && home.count(&ahead) > 0 {
            return (daemon, long);
        }
        daemon.signal("CONT");
        let id: String = home.sql().query_row("SELECT id FROM jobs WHERE seq = ?1", [long], |row| row.get(0)).unwrap();
        home.jobq(&["cancel", &id]);
    }
}

#[test]
fn a_kill_under_load_costs_an_attempt_only_if_its_guest_had_started() {
    let home = Home::new(LONG_LEASE);
    home.plugin("noop", "noop");
    let mut dead = 0;
    for _ in 0..3 {
        let daemon = home.daemon();
        let done = home.count("SELECT count(*) FROM jobs WHERE status = 'completed'");
        bulk(&home, (0..2000).map(|_| "{\"type\": \"noop\", \"payload\": 0, \"max_attempts\": 1}\n".to_owned()));
        eventually("some to complete", || {
            (home.count("SELECT count(*) FROM jobs WHERE status = 'completed'") > done + 100).then_some(())
        });
        daemon.kill();
        dead += home.running().intersection(&home.noted()).count();
    }
    let daemon = home.daemon();
    eventually("all to end", || {
        (home.count("SELECT count(*) FROM jobs WHERE completed_at IS NULL") == 0).then_some(())
    });
    daemon.stop();
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'dead'"), i64::try_from(dead).unwrap());
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'completed'"), 6000 - i64::try_from(dead).unwrap());
    assert_eq!(home.count("SELECT count(*) FROM jobs__attempts"), 6000, "one each");
}

impl Home {
    /// The running attempts, by row and fencing token.
    fn running(&self) -> BTreeSet<(i64, i64)> {
        let sql = self.sql();
        let mut query = sql.prepare("SELECT seq, lease FROM jobs WHERE status = 'running'").unwrap();
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    /// The attempts whose guests had started, according to the files of the daemons.
    fn noted(&self) -> BTreeSet<(i64, i64)> {
        let files = worker_files(self).into_iter().map(|file| fs::read(file.path()).unwrap());
        let number = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().unwrap());
        let notes = |file: Vec<u8>| {
            file[1024..].chunks(32).map(|note| (number(&note[..8]), number(&note[8..16]))).collect::<Vec<_>>()
        };
        files.flat_map(notes).collect()
    }
}
