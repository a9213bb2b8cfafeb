//! Commands that only read, run by a user who can't write the queue.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use super::standing;
use crate::home::{Home, Said};

/// A user who owns no files.
const OTHER_USER: u32 = 65_534;

fn set_mode(home: &Home, name: &str, mode: u32) {
    fs::set_permissions(home.path(name), Permissions::from_mode(mode)).unwrap();
}

/// Runs a command as another user; `None` where this process may not, or that user cannot reach the program.
fn as_other_user(home: &Home, args: &[&str]) -> Option<Said> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can run a program as another user");
        return None;
    }
    let output = home.command(args).uid(OTHER_USER).gid(OTHER_USER).output().ok()?;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some(Said { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) })
}

/// A queue that others may read and not write.
fn readable() -> (Home, standing::Standing) {
    let (home, jobs) = standing::home();
    for (name, mode) in [("", 0o755), ("plugins", 0o755), ("jobq.toml", 0o644), ("jobq.db", 0o644)] {
        set_mode(&home, name, mode);
    }
    (home, jobs)
}

#[test]
fn a_user_who_may_only_read_sees_everything_while_the_queue_is_open() {
    let (home, jobs) = readable();
    let open = home.sql();
    open.query_row("SELECT count(*) FROM jobs", [], |_| Ok(())).unwrap();
    for args in [&["status"][..], &["list"], &["show", &jobs.dead], &["logs", &jobs.dead], &["plugin", "list"]] {
        let Some(said) = as_other_user(&home, args) else { return };
        let expected = home.jobq(args);
        assert_eq!((said.code, said.stdout, said.stderr), (0, expected.stdout, expected.stderr), "{args:?}");
    }
    let said = as_other_user(&home, &["retry", &jobs.dead]).unwrap();
    assert!(said.code == 1 && said.stderr.contains("cannot be written"), "{said:?}");
    assert_eq!(home.show(&jobs.dead)["status"], "dead");
}

#[test]
fn a_user_who_cannot_read_is_told_why() {
    let (home, _) = readable();
    let refused = |expected: &str| {
        let Some(said) = as_other_user(&home, &["status"]) else { return };
        assert!(said.code == 1 && said.stderr.contains(expected), "lacks {expected:?}: {said:?}");
        assert!(!said.stderr.contains("create it"), "{said:?}");
    };
    for name in ["jobq.db-wal", "jobq.db-shm"] {
        _ = fs::remove_file(home.path(name));
    }
    refused("but only while another program has it open");
    let open = home.sql();
    open.query_row("SELECT count(*) FROM jobs", [], |_| Ok(())).unwrap();
    set_mode(&home, "jobq.db", 0o600);
    refused("this user may not read `");
    fs::create_dir(home.path("private")).unwrap();
    home.configure("[queue]\ndatabase = \"private/jobq.db\"\n");
    set_mode(&home, "jobq.toml", 0o644);
    set_mode(&home, "private", 0o700);
    refused("this user may not look into `");
}
