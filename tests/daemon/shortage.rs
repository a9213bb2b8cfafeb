//! A host without enough memory for its guests: no job loses an attempt.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::home::{Home, eventually};

/// KiB of address space: enough for a daemon, and less than the memory of one guest.
const ADDRESS_SPACE: &str = "3145728";

#[test]
fn a_job_that_the_host_has_no_memory_for_waits_without_losing_an_attempt() {
    let home = Home::new("[worker]\nconcurrency = 2\n[defaults]\nmax_attempts = 1\n[jobs.e]\nmemory = \"3500MiB\"\n");
    home.plugin("e", "echo");
    let id = home.enqueue("e", "[1]", &[]);
    let log = home.path("limited.log");
    let limited = ["-c", &format!("ulimit -v {ADDRESS_SPACE} && exec \"$0\" run"), env!("CARGO_BIN_EXE_jobq")];
    let mut command = Command::new("sh");
    command.args(limited).current_dir(home.path("")).stdin(Stdio::null()).stdout(Stdio::null());
    let mut daemon = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
    let line = eventually("the host to run out of memory", || {
        let log = fs::read_to_string(&log).unwrap();
        assert!(daemon.try_wait().unwrap().is_none(), "{log}");
        log.lines().find(|line| line.contains("without counting this attempt")).map(str::to_owned)
    });
    assert!(line.contains(&id) && line.contains("WARN") && line.contains("Cannot allocate memory"), "{line}");
    let job = eventually("the attempt to be recorded", || {
        Some(home.show(&id)).filter(|job| job["attempts_log"].as_array().is_some_and(|log| !log.is_empty()))
    });
    assert_eq!((&job["attempts"], &job["attempts_log"][0]["outcome"]), (&0.into(), &"snoozed".into()), "{job}");
    // A kill during its next try would count as a lost attempt.
    assert!(Command::new("kill").arg(daemon.id().to_string()).status().unwrap().success());
    assert!(daemon.wait().unwrap().success());

    let daemon = home.daemon();
    let job = home.await_status(&id, "completed");
    assert_eq!((&job["attempts"], &job["result"]), (&1.into(), &"[1]".into()), "{job}");
    daemon.stop();
}
