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

#[test]
fn a_table_is_as_wide_as_the_terminal_and_its_ids_are_whole() {
    let (home, jobs) = standing::home();
    for columns in [64, 80, 100, 140] {
        let text = seen(&home, &["list"], columns, false);
        for line in text.lines() {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line:?}");
        }
        assert_eq!(text.lines().count(), 7, "{columns}: a job is a line:\n{text}");
        for id in [&jobs.pending, &jobs.running, &jobs.dead] {
            assert!(text.contains(id.as_str()), "{columns}:\n{text}");
        }
        assert_eq!(text.contains("ATTEMPTS"), columns >= 80, "{text}");
        assert_eq!(text.contains("40% 12 of"), columns >= 100, "{text}");
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
