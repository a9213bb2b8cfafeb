//! `jobq delete`: by id and by filter.

use serde_json::Value;

use super::standing;
use crate::home::Home;

fn rows(home: &Home, table: &str) -> i64 {
    home.count(&format!("SELECT count(*) FROM {table}"))
}

#[test]
fn finished_and_waiting_jobs_are_deleted_by_id_with_their_attempts_and_logs() {
    let (home, jobs) = standing::home();
    let ids = [&jobs.pending, &jobs.completed, &jobs.failed, &jobs.dead, &jobs.cancelled];
    let said = home.jobq(&[&["delete"][..], &ids.map(String::as_str)].concat());
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{said:?}");
    assert!(said.stderr.contains(&format!("{} was dead and is deleted now", jobs.dead)), "{said:?}");
    assert_eq!((rows(&home, "jobs"), rows(&home, "jobs__attempts"), rows(&home, "jobs__logs")), (1, 0, 0));
    assert_eq!(home.show(&jobs.running)["status"], "running");
}

#[test]
fn a_running_job_is_refused() {
    let (home, jobs) = standing::home();
    let said = home.jobq(&["delete", &jobs.running, "nobody", &jobs.dead]);
    assert_eq!(said.code, 4, "the first error decides: {said:?}");
    assert!(said.stderr.contains(&format!("`jobq cancel {}`", jobs.running)), "{said:?}");
    assert_eq!(home.jobq(&["delete", &jobs.dead]).code, 3, "the others are deleted");
    let said = home.jobq(&["delete", "--status", "running"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert_eq!(home.show(&jobs.running)["status"], "running");
}

#[test]
fn a_filter_takes_finished_jobs_unless_it_names_other_states() {
    let (home, jobs) = standing::home();
    let json = |args: &[&str]| -> Value {
        let said = home.jobq(&[args, &["-o", "json"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    };
    assert_eq!(json(&["delete", "--all", "--dry-run"])["matched"], 3);
    assert_eq!(rows(&home, "jobs"), 6, "a dry run deletes nothing");
    assert_eq!(json(&["delete", "--type", "report", "--older-than", "1d"])["deleted"], 1);
    assert_eq!(json(&["delete", "--all"])["deleted"], 2);
    for id in [&jobs.pending, &jobs.running, &jobs.failed] {
        home.show(id);
    }
    assert_eq!(json(&["delete", "--status", "pending", "--status", "failed"])["deleted"], 2);
    assert_eq!(home.jobq(&["delete"]).code, 2);
}

#[test]
fn a_job_that_the_application_refers_to_is_kept() {
    let (home, jobs) = standing::home();
    let refer =
        format!("CREATE TABLE invoices (job TEXT REFERENCES jobs(id)); INSERT INTO invoices VALUES ('{}')", jobs.dead);
    home.sql().execute_batch(&refer).unwrap();
    let said = home.jobq(&["delete", "--all"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "deleted 2 jobs\n"), "{said:?}");
    assert!(said.stderr.contains("left 1 job alone: table `invoices` refers"), "{said:?}");
    let said = home.jobq(&["delete", &jobs.dead]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.stderr.contains("invoices"), "{said:?}");
}
