//! SIGHUP: the settings are read again while jobs run.

use crate::home::Home;

#[test]
fn good_settings_are_taken_and_bad_ones_change_nothing() {
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
