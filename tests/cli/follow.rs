//! `logs -f` from the first line to the end of the job.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::home::{Home, eventually};

#[test]
fn it_waits_for_the_first_line_and_ends_with_the_job() {
    let home = Home::new("");
    home.plugin("context", "context");
    let id = home.enqueue("context", "{}", &[]);
    let follower = home.command(&["logs", "-f", &id]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let daemon = home.daemon();
    let output = follower.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines, home.jobq(&["logs", &id]).stdout);
    assert_eq!(lines.lines().count(), 6, "{lines}");
    assert!(String::from_utf8(output.stderr).unwrap().ends_with("-- the job is completed\n"));
    daemon.stop();
}

#[test]
fn it_goes_on_through_the_attempts_and_loses_no_line_when_the_oldest_are_forgotten() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let id = home.enqueue("echo", "{}", &["--in", "1h"]);
    let line = "INSERT INTO jobs__logs (seq, line, lease, attempt, time, source, message) VALUES (1, ?1, ?2, ?2, 0, 'log', ?1)";
    (0..4).for_each(|number| _ = home.sql().execute(line, (number, 1 + number / 3)).unwrap());
    let mut follower = home.command(&["logs", "-f", "-o", "ndjson", &id]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        line["message"].as_str().unwrap().to_owned()
    });
    assert_eq!(lines.by_ref().take(4).collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    let mut sql = home.sql();
    let batch = sql.transaction().unwrap();
    batch.execute("DELETE FROM jobs__logs WHERE lease = 1", []).unwrap();
    (4..6).for_each(|number| _ = batch.execute(line, (number, 2)).unwrap());
    batch.execute(line, (6, 3)).unwrap();
    batch.commit().unwrap();
    assert_eq!(lines.by_ref().take(3).collect::<Vec<_>>(), ["4", "5", "6"]);
    home.jobq(&["cancel", &id]);
    assert_eq!(lines.next(), None);
    assert!(eventually("the follower to end", || follower.try_wait().unwrap()).success());
}
