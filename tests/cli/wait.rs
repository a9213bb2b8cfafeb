//! `jobq wait`, and what `enqueue --wait` shares with it.

use serde_json::Value;

use crate::home::Home;

fn home() -> Home {
    let home = Home::new("");
    home.plugin("echo", "echo").plugin("answers", "answers");
    home
}

/// Ends a job by SQL.
fn end(home: &Home, id: &str, columns: &str) {
    let sql = format!("UPDATE jobs SET {columns}, completed_at = created_at WHERE id = ?1");
    assert_eq!(home.sql().execute(&sql, [id]).unwrap(), 1);
}

#[test]
fn one_job_prints_its_result_and_its_end_decides_the_exit_code() {
    let home = home();
    let id = home.enqueue("echo", "1", &[]);
    let said = home.jobq(&["wait", &id, "--timeout", "100ms"]);
    assert_eq!((said.code, said.stdout.as_str()), (124, ""), "{said:?}");
    assert!(said.stderr.contains("still pending") && said.stderr.contains("no daemon is running"), "{said:?}");
    end(&home, &id, "status = 'completed', result = '[7]'");
    let said = home.jobq(&["wait", &id]);
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "[7]\n", ""));
    end(&home, &id, "status = 'dead', error = 'no such account'");
    let said = home.jobq(&["wait", &id]);
    assert_eq!((said.code, said.stdout.as_str()), (100, ""));
    assert!(said.stderr.contains("no such account"), "{said:?}");
    end(&home, &id, "status = 'cancelled'");
    assert_eq!(home.jobq(&["wait", &id]).code, 101);
    assert_eq!(home.jobq(&["wait", "nobody"]).code, 3);
}

#[test]
fn several_jobs_are_printed_as_they_end_and_the_worst_decides() {
    let home = home();
    let daemon = home.daemon();
    let (good, bad) =
        (home.enqueue("echo", "1", &[]), home.enqueue("answers", r#"{"do": "fatal", "message": "m"}"#, &[]));
    let said = home.jobq(&["wait", &good, &bad, &good, "--timeout", "100s"]);
    assert_eq!(said.code, 100, "{said:?}");
    let mut lines: Vec<&str> = said.stdout.lines().collect();
    lines.sort_unstable();
    let mut expected = [format!("{good} completed"), format!("{bad} dead")];
    expected.sort_unstable();
    assert_eq!(lines, expected);
    daemon.stop();
    let said = home.jobq(&["wait", &good, &bad, "-o", "json"]);
    let jobs: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &jobs[0]["result"], &jobs[1]["status"]), (100, &"1".into(), &"dead".into()));
}

#[test]
fn a_beginning_of_an_id_is_enough() {
    let home = home();
    let id = home.enqueue("echo", "1", &[]);
    end(&home, &id, "status = 'completed', result = '1'");
    assert_eq!(home.jobq(&["wait", &id[..20]]).stdout, "1\n");
    assert_eq!(home.jobq(&["cancel", &id[..20]]).code, 4, "it is found, and has ended");
}

#[test]
fn an_enqueue_that_waits_prints_the_job_in_the_format_asked_for() {
    let home = home();
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "echo", "[1]", "--wait=100s", "-o", "json"]);
    let job: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &job["status"], &job["result"]), (0, &"completed".into(), &"[1]".into()));
    assert_eq!(job["id"], said.stderr.trim_end());
    let said = home.jobq(&["enqueue", "answers", r#"{"do": "fatal", "message": "m"}"#, "--wait=100s", "-o", "ndjson"]);
    let job: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &job["status"], &job["error"]), (100, &"dead".into(), &"m".into()));
    daemon.stop();
}

#[test]
fn a_wait_for_a_type_that_no_daemon_serves_says_what_runs() {
    let home = home();
    home.configure("[worker]\ntypes = [\"echo\"]\n");
    let daemon = home.daemon();
    home.await_plugin("echo", "serving");
    let said = home.jobq(&["enqueue", "answers", "{}", "--wait=100ms"]);
    assert_eq!(said.code, 124, "{said:?}");
    assert!(said.stderr.contains("no running daemon serves `answers`: 1 daemon is running: "), "{said:?}");
    assert!(said.stderr.contains(" serves `echo`"), "{said:?}");
    daemon.stop();
}

#[test]
fn a_job_that_is_deleted_meanwhile_ends_the_wait() {
    let home = home();
    let (id, other) = (home.enqueue("echo", "1", &["--in", "1h"]), home.enqueue("echo", "2", &[]));
    end(&home, &other, "status = 'completed', result = '2'");
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| home.jobq(&["wait", &id, &other]));
        assert_eq!(home.jobq(&["delete", &id]).code, 0);
        waiting.join().unwrap()
    });
    assert_eq!(waiting.code, 3, "{waiting:?}");
}
