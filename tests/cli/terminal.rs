//! What only a terminal gets: tables of its width, colour, a line that changes in place.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::standing;
use crate::home::{Home, eventually};

/// A command whose stdout and stderr are a terminal.
struct Seen {
    child: Child,
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

fn on_terminal(command: &mut Command, columns: u16) -> Seen {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let open = || Stdio::from(OwnedFd::from(File::options().read(true).write(true).open(&name).unwrap()));
    command.env("TERM", "xterm").env_remove("COLUMNS").stdin(Stdio::null()).stdout(open()).stderr(open());
    let child = command.spawn().unwrap();
    // Until nobody has the other end any more, reading waits; then it fails.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let text = Arc::new(Mutex::new(String::new()));
    let reader = std::thread::spawn({
        let (mut master, text) = (File::from(master), text.clone());
        move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = master.read(&mut bytes) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        }
    });
    Seen { child, text, reader }
}

impl Seen {
    fn await_text(&self, wanted: &str) {
        eventually(&format!("the terminal to show {wanted:?}"), || {
            self.text.lock().unwrap().contains(wanted).then_some(())
        });
    }

    fn end(mut self) -> (i32, String) {
        let status = eventually("the command to end", || self.child.try_wait().unwrap());
        self.reader.join().unwrap();
        let text = self.text.lock().unwrap().replace("\r\n", "\n");
        (status.code().unwrap_or(-1), text)
    }
}

fn without_colour(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

fn seen(home: &Home, args: &[&str], columns: u16, colour: bool) -> String {
    let mut command = home.command(args);
    if colour {
        command.env_remove("NO_COLOR");
    }
    let (code, text) = on_terminal(&mut command, columns).end();
    assert_eq!(code, 0, "{text}");
    text
}

/// What the commands print on terminals of several widths. The ids are the same in every run.
#[test]
fn tables_fit_the_terminal() {
    let (home, jobs) = standing::home();
    let ids = [&jobs.cancelled, &jobs.dead, &jobs.completed, &jobs.failed, &jobs.running, &jobs.pending];
    for (at, id) in ids.iter().enumerate() {
        let fixed = format!("0193a5c{at}-7f3b-7c1e-9d0a-3f6b8c2d4e10");
        assert_eq!(home.sql().execute("UPDATE jobs SET id = ?1 WHERE id = ?2", (&fixed, id)).unwrap(), 1);
    }
    let error = "trap: index out of bounds\n    at parse_row (src/lib.rs:42)\n    at handle (src/lib.rs:17)";
    let digest = "UPDATE jobs__attempts SET digest = zeroblob(32) WHERE lease = 2";
    home.sql().execute(digest, []).unwrap();
    for table in ["jobs", "jobs__attempts"] {
        home.sql().execute(&format!("UPDATE {table} SET error = ?1 WHERE lease = 2"), [error]).unwrap();
    }
    let mut text = String::new();
    for columns in [60, 80, 120, 200] {
        for args in [&["list"][..], &["status"], &["show", "0193a5c1"], &["logs", "0193a5c1"], &["plugin", "list"]] {
            let printed = seen(&home, args, columns, false);
            if args == ["list"] {
                let longest = printed.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(longest <= columns.into(), "{args:?} at {columns}:\n{printed}");
            }
            text += &format!("{columns} $ jobq {}\n{printed}\n", args.join(" "));
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-01-02T03:04:05.678Z");
    settings.add_filter(r"(created_at|scheduled_at)( +\S+) \((now|\d+[sm] ago)\)", "$1$2 (now)");
    settings.bind(|| insta::assert_snapshot!("terminal", text));
}

#[test]
fn shortened_ids_still_name_one_job_each() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    // The second and third are alike in what is shown of most ids, and so are the third and one that is not listed.
    let ids = [
        "0193a5c2-7f3b-7c1e-9d0a-000000000001",
        "0193a5c3-7f3b-7c1e-9d0a-000000000001",
        "0193a5c3-7f3b-7c1e-9d0b-000000000001",
    ];
    let insert = "INSERT INTO jobs (id, type, status, completed_at) VALUES (?1, 'echo', ?2, 1)";
    for (id, status) in ids.iter().zip(["dead", "dead", "completed"]) {
        home.sql().execute(insert, (id, status)).unwrap();
    }
    let listed = seen(&home, &["list", "--status", "dead"], 80, false);
    let short: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(short, [&ids[1][..23], &ids[0][..23]]);
    for (short, id) in short.iter().zip([ids[1], ids[0]]) {
        assert_eq!(home.show(short)["id"], id);
    }
}

#[test]
fn states_have_colour_on_a_terminal_unless_it_is_unwanted() {
    let (home, jobs) = standing::home();
    let plain = seen(&home, &["list"], 140, false);
    let coloured = seen(&home, &["list"], 140, true);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert!(coloured.contains("\u{1b}[") && coloured.contains("dead"), "{coloured:?}");
    assert_eq!(without_colour(&coloured), plain, "colour changes nothing else");
    let shown = seen(&home, &["show", &jobs.dead], 140, true);
    assert!(shown.contains("\u{1b}[31mdead\u{1b}[0m"), "{shown:?}");
    let mut dumb = home.command(&["list"]);
    dumb.env_remove("NO_COLOR");
    let piped = dumb.output().unwrap();
    assert!(!String::from_utf8(piped.stdout).unwrap().contains('\u{1b}'), "no terminal, no colour");
}

#[test]
fn a_wait_shows_how_far_the_job_is_and_leaves_only_the_result() {
    let home = Home::new("");
    home.plugin("polite", "polite");
    let mut command = home.command(&["enqueue", "polite", r#"{"steps": 20, "ms": 100}"#, "--wait=100s"]);
    let waiting = on_terminal(&mut command, 100);
    waiting.await_text("no daemon is running");
    let daemon = home.daemon();
    waiting.await_text("step ");
    let (code, text) = waiting.end();
    assert_eq!(code, 0, "{text}");
    assert!(text.ends_with("\r\u{1b}[2K20\n"), "{text:?}");
    daemon.stop();
}

#[test]
fn ctrl_c_ends_a_wait_but_not_the_job() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut command = home.command(&["enqueue", "echo", "1", "--wait"]);
    let waiting = on_terminal(&mut command, 100);
    waiting.await_text("no daemon is running");
    let killed = Command::new("kill").args(["-INT", &waiting.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let (code, text) = waiting.end();
    assert_eq!(code, 130, "{text}");
    assert!(text.contains("`jobq show") && text.contains("shows its state"), "{text:?}");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'pending'"), 1);
}
