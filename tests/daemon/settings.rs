//! SIGHUP: the settings are read again while jobs run.

use std::fs;
use std::process::Command;

use crate::home::Home;

#[test]
fn valid_settings_are_applied_and_invalid_ones_change_nothing() {
    let home = Home::new("[defaults]\nmax_attempts = 1\n");
    home.plugin("answers", "answers");
    let mut daemon = home.daemon();
    let fail = r#"{"do": "retry", "message": "m"}"#;
    assert_eq!(home.jobq(&["enqueue", "answers", fail, "--wait=100s"]).code, 100);

    home.configure("[defaults]\nmax_atempts = 7\n");
    daemon.signal("HUP");
    daemon.await_line("nothing was changed");
    daemon.await_line("max_attempts");
    home.configure("[queue]\ntable = \"other\"\n[defaults]\nmax_attempts = 2\nbackoff = { base = \"1h\" }\n");
    daemon.signal("HUP");
    daemon.await_line("settings reloaded");
    daemon.await_line("`queue.table` has changed");
    home.configure("[defaults]\nmax_attempts = 2\nbackoff = { base = \"1h\" }\n");
    let id = home.enqueue("answers", fail, &[]);
    home.await_status(&id, "failed");
    daemon.stop();
}

#[test]
fn a_missing_settings_file_changes_nothing() {
    let home = Home::new("[worker]\nshutdown_grace = \"1h\"\n[jobs.mail]\nplugin = \"e.wasm\"\n");
    home.plugin("e", "echo");
    let mut daemon = home.daemon();
    fs::rename(home.path("jobq.toml"), home.path("away.toml")).unwrap();
    daemon.signal("HUP");
    daemon.await_line("nothing was changed: `jobq.toml` is gone");
    fs::rename(home.path("away.toml"), home.path("jobq.toml")).unwrap();
    let said = home.jobq(&["enqueue", "mail", "1", "--wait=100s"]);
    assert_eq!(said.stdout, "1\n", "{said:?}");
    daemon.signal("TERM");
    daemon.await_line("running attempts have 3600s to end");
    assert!(daemon.await_end().success());
}

#[test]
fn a_settings_file_that_becomes_a_pipe_changes_nothing_and_blocks_nothing() {
    let home = Home::new("");
    let mut daemon = home.daemon();
    fs::remove_file(home.path("jobq.toml")).unwrap();
    assert!(Command::new("mkfifo").arg(home.path("jobq.toml")).status().unwrap().success());
    daemon.signal("HUP");
    daemon.await_line("it is not a regular file");
    daemon.stop();
}

#[test]
fn a_stop_after_a_reload_uses_the_new_grace_period() {
    let home = Home::new("[worker]\nshutdown_grace = \"1h\"\n");
    let mut daemon = home.daemon();
    home.configure("[worker]\nshutdown_grace = \"2h\"\n");
    daemon.signal("HUP");
    daemon.await_line("settings reloaded");
    daemon.signal("TERM");
    daemon.await_line("running attempts have 7200s to end");
    assert!(daemon.await_end().success());
}
