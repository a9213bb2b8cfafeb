//! `retry` and `cancel` by filter: more jobs than one batch holds, keys, and a daemon that works meanwhile.

use serde_json::Value;

use crate::home::Home;

/// A queue in which many jobs of type `echo` are dead, and one of type `other`.
fn dead(count: usize) -> Home {
    let home = Home::new("");
    home.plugin("echo", "echo").plugin("other", "echo");
    home.enqueue("other", "1", &[]);
    let insert = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         INSERT INTO jobs (type, payload) SELECT 'echo', i FROM n"
    );
    home.sql().execute(&insert, []).unwrap();
    let bury = "UPDATE jobs SET status = 'dead', attempts = 3, error = 'no luck', completed_at = scheduled_at";
    home.sql().execute(bury, []).unwrap();
    home
}

fn json(home: &Home, args: &[&str]) -> Value {
    let said = home.jobq(&[args, &["-o", "json"]].concat());
    assert_eq!(said.code, 0, "{args:?} {said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn a_dry_run_reports_what_the_command_would_do() {
    let home = dead(1_203);
    let told = json(&home, &["retry", "--type", "echo", "--dry-run"]);
    assert_eq!((told["matched"].as_u64(), told["first"].as_array().unwrap().len()), (Some(1_203), 10));
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'dead'"), 1_204, "nothing has changed");
    let done = json(&home, &["retry", "--type", "echo"]);
    assert_eq!(done["retried"], 1_203);
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending' AND type = 'echo'"), 1_203);
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'dead' AND type = 'other'"), 1);
    for id in told["first"].as_array().unwrap() {
        assert_eq!(home.show(id.as_str().unwrap())["status"], "pending");
    }
}

#[test]
fn a_limit_takes_the_jobs_that_ended_first() {
    let home = dead(20);
    home.sql().execute("UPDATE jobs SET completed_at = completed_at - seq * 60000", []).unwrap();
    assert_eq!(json(&home, &["retry", "--all", "--limit", "3"])["retried"], 3);
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending' AND seq > 18"), 3);
    assert_eq!(json(&home, &["cancel", "--all", "--limit", "2"])["cancelled"], 2);
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending'"), 1);
}

#[test]
fn jobs_that_die_again_meanwhile_are_not_retried_twice() {
    let home = dead(3_000);
    home.configure("[defaults]\nmax_attempts = 1\n");
    home.plugin("echo", "panic");
    let daemon = home.daemon();
    home.await_plugin("echo", "serving");
    assert_eq!(json(&home, &["retry", "--type", "echo"])["retried"], 3_000, "each of them once");
    daemon.stop();
}

#[test]
fn a_held_key_is_reported_and_stops_no_other_job() {
    let home = dead(2);
    home.sql().execute("UPDATE jobs SET unique_key = 'k' WHERE type = 'echo'", []).unwrap();
    let said = home.jobq(&["retry", "--all"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "retried 2 jobs\n"), "{said:?}");
    assert!(said.stderr.contains("another unfinished job holds the key"), "{said:?}");
}

/// The write-ahead log is kept by this connection, so its size tells how many pages were committed.
#[test]
fn many_ids_are_committed_together() {
    let home = dead(1_200);
    let sql = home.sql();
    let ids: Vec<String> = {
        let mut select = sql.prepare("SELECT id FROM jobs").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let said = home.jobq(&[&["retry"][..], &ids].concat());
    assert_eq!((said.code, said.stderr.lines().count()), (0, 1_201), "{said:?}");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending'"), 1_201);
    let written = std::fs::metadata(home.path("jobq.db-wal")).unwrap().len();
    assert!(written < 3 << 20, "{written} bytes of log for 1,201 jobs");
}

#[test]
fn an_error_with_one_id_does_not_stop_the_others() {
    let home = dead(0);
    let (first, second) = (home.enqueue("echo", "1", &[]), home.enqueue("echo", "2", &[]));
    let said = home.jobq(&["cancel", &first, "nobody", &second]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(home.show(&second)["status"], "cancelled");
    let said = home.jobq(&["cancel", &second, "nobody"]);
    assert_eq!(said.code, 4, "the first problem decides: {said:?}");
    assert_eq!(home.jobq(&["retry", &first, &second]).code, 0);
}
