//! A reader that goes away, such as `head -1`, is no error and no panic.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::standing;
use crate::home::{Home, Said};

/// A pipe that nobody reads from.
fn deaf() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    Stdio::from(writer)
}

fn end(command: &mut Command) -> Said {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_closed_stdout_is_no_error() {
    let (home, jobs) = standing::home();
    for args in [
        &["list"][..],
        &["list", "-o", "json"],
        &["list", "-o", "ndjson"],
        &["status"],
        &["show", &jobs.dead],
        &["logs", &jobs.dead],
        &["logs", &jobs.dead, "-f"],
        &["plugin", "list"],
        &["retry", "--all", "--dry-run"],
        &["check"],
        &["check", "--schema"],
        &["enqueue", "report", "{}"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--version"],
    ] {
        let said = end(home.command(args).stdout(deaf()));
        assert_eq!(said.code, 0, "{args:?} {said:?}");
        assert!(!said.stderr.contains("panic") && !said.stderr.contains("error"), "{args:?} {said:?}");
    }
}

#[test]
fn a_closed_stderr_is_no_error() {
    let (home, jobs) = standing::home();
    for (args, code) in [
        (&["list", "--type", "nothing"][..], 0),
        (&["show", "nobody"], 3),
        (&["retry", &jobs.dead], 0),
        (&["retry", &jobs.completed], 4),
        (&["retry"], 2),
        (&["lst"], 2),
        (&["logs", &jobs.pending], 0),
        (&["plugin", "list"], 0),
        (&["enqueue", "report", "{}", "--wait=10ms"], 124),
        (&["status", "--config", "nowhere.toml"], 2),
    ] {
        let said = end(home.command(args).stderr(deaf()));
        assert_eq!(said.code, code, "{args:?} {said:?}");
    }
}

#[test]
fn a_daemon_keeps_working_when_its_log_is_closed() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut child =
        home.command(&["run"]).env("JOBQ_LOG", "trace").stdin(Stdio::null()).stderr(deaf()).spawn().unwrap();
    let said = home.jobq(&["enqueue", "echo", "1", "--wait=100s"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "{said:?}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A pipe with room for nothing more, and the end to read from, which nobody does.
fn full() -> (std::io::PipeReader, Stdio) {
    let (reader, writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while (&writer).write(b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    (reader, Stdio::from(writer))
}

#[test]
fn a_daemon_keeps_working_and_ends_in_time_when_its_log_is_full() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let (reader, stderr) = full();
    let mut daemon = home.spawn_saying_to(stderr, &[("JOBQ_LOG", "trace")]);
    for _ in 0..20 {
        let said = home.jobq(&["enqueue", "echo", "1", "--wait=100s"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "{said:?}");
    }
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
    assert_eq!(home.count("SELECT count(*) FROM jobs__daemons"), 0, "it has signed off");
    drop(reader);
}

#[test]
fn the_last_lines_of_a_daemon_reach_a_late_reader() {
    let home = Home::new("");
    let (mut reader, stderr) = full();
    let child = home.command(&["run", "--config", "nowhere.toml"]).stdin(Stdio::null()).stderr(stderr).spawn();
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("cannot read the settings from"), "{}", said.trim_start_matches('x'));
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(2));
}
