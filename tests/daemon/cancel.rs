//! Cancelling waiting and running jobs (I5).

use crate::home::{Home, eventually};

#[test]
fn a_cancelled_guest_is_told_and_its_result_changes_nothing() {
    let home = Home::new("");
    home.plugin("polite", "polite");
    let daemon = home.daemon();
    let id = home.enqueue("polite", "{}", &["--key", "k"]);
    home.await_status(&id, "running");
    let said = home.jobq(&["cancel", &id]);
    assert_eq!(said.code, 0, "{said:?}");
    let job = home.show(&id);
    assert_eq!(job["status"], "cancelled");
    assert_eq!(job["attempts_log"][0]["outcome"], "cancelled");
    let next = home.enqueue("polite", "{}", &["--key", "k", "--in", "1h"]);
    assert_ne!(next, id, "its key is free");
    eventually("its slot to be free", || {
        let daemons = home.sql().query_row("SELECT busy FROM jobs__daemons", [], |row| row.get::<_, i64>(0));
        (daemons.unwrap() == 0).then_some(())
    });
    assert_eq!(home.show(&id)["status"], "cancelled", "the result of the guest came too late");
    daemon.stop();
}

#[test]
fn a_guest_that_ignores_a_cancel_is_stopped() {
    let home = Home::new("[worker]\nconcurrency = 1\n[defaults]\ntimeout = \"1h\"\nfuel = \"unlimited\"\n");
    home.plugin("spin", "spin").plugin("echo", "echo");
    let daemon = home.daemon();
    let id = home.enqueue("spin", "{}", &[]);
    home.await_status(&id, "running");
    assert_eq!(home.jobq(&["cancel", &id]).code, 0);
    let said = home.jobq(&["enqueue", "echo", "1", "--wait=100s"]);
    assert_eq!(said.stdout, "1\n", "the only slot is free again");
    daemon.stop();
}

#[test]
fn a_cancelled_job_never_starts_and_a_finished_job_cannot_be_cancelled() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let waiting = home.enqueue("echo", "1", &["--in", "1h"]);
    assert_eq!(home.jobq(&["cancel", &waiting]).code, 0);
    assert_eq!(home.show(&waiting)["status"], "cancelled");
    let again = home.jobq(&["cancel", &waiting]);
    assert_eq!(again.code, 4);
    assert!(again.stderr.contains("is cancelled and cannot be cancelled"), "{again:?}");
    assert_eq!(home.jobq(&["retry", &waiting]).code, 0);
    let daemon = home.daemon();
    home.await_status(&waiting, "completed");
    assert_eq!(home.jobq(&["retry", &waiting]).code, 4, "nothing leaves completed");
    daemon.stop();
}
