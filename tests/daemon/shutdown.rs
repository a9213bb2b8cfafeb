//! A stop ends in time whatever the guests do, and leaves nothing running (I13).

use std::time::{Duration, Instant};

use crate::home::{Home, eventually};

fn assert_given_back(home: &Home, spinning: i64) {
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'running'"), 0);
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending' AND attempts = 0"), spinning);
    assert_eq!(home.count("SELECT count(*) FROM jobs__attempts WHERE outcome = 'given_back'"), spinning);
    assert_eq!(home.count("SELECT count(*) FROM jobs__daemons"), 0, "it has signed off");
}

fn spinning(home: &Home, how_many: i64) {
    home.plugin("spin", "spin");
    (0..how_many).for_each(|_| _ = home.enqueue("spin", "{}", &[]));
}

/// Waits until the daemon says that so many guests run; a job whose guest has not started leaves no trace when it is given back.
fn await_running(home: &Home, how_many: i64) {
    eventually("all to run", || {
        (home.count("SELECT coalesce(sum(busy), 0) FROM jobs__daemons") == how_many).then_some(())
    });
}

#[test]
fn guests_that_never_yield_are_given_back_after_the_grace() {
    let home = Home::new("[worker]\nconcurrency = 4\nshutdown_grace = \"1s\"\n");
    spinning(&home, 4);
    let mut daemon = home.daemon();
    await_running(&home, 4);
    let asked = Instant::now();
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
    assert!(asked.elapsed() >= Duration::from_secs(1), "the grace was theirs");
    assert_given_back(&home, 4);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let home = Home::new("[worker]\nconcurrency = 2\nshutdown_grace = \"1h\"\n");
    spinning(&home, 2);
    let mut daemon = home.daemon();
    await_running(&home, 2);
    daemon.signal("INT");
    daemon.await_line("stopping");
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
    assert_given_back(&home, 2);
}

#[test]
fn a_guest_that_waits_in_the_host_is_given_back_too() {
    let home = Home::new("[worker]\nshutdown_grace = \"100ms\"\n[defaults]\ntimeout = \"1h\"\n");
    home.plugin("sleep", "sleep");
    home.enqueue("sleep", r#"{"ms": 3000000}"#, &[]);
    let mut daemon = home.daemon();
    await_running(&home, 1);
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
    assert_given_back(&home, 1);
}

#[test]
fn what_ends_within_the_grace_is_recorded_as_it_ended() {
    let home = Home::new("[worker]\nshutdown_grace = \"1h\"\n");
    home.plugin("sleep", "sleep");
    let id = home.enqueue("sleep", r#"{"ms": 1500}"#, &[]);
    let daemon = home.daemon();
    home.await_status(&id, "running");
    daemon.stop();
    assert_eq!(home.show(&id)["status"], "completed");
}

#[test]
fn a_signal_at_the_very_start_is_heeded() {
    let home = Home::new("");
    let mut daemon = home.daemon();
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
}
