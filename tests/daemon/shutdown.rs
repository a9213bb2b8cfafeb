//! A stop ends in time whatever the guests do, and leaves nothing running (I13).

use std::time::{Duration, Instant};

use crate::home::{Home, eventually};
use crate::sandbox::support::{embed, module_doing};

/// What a busy machine may take on top of what is promised.
const SLACK: Duration = Duration::from_secs(20);

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
fn guests_that_never_yield_are_given_back_after_the_grace_period() {
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
fn a_guest_blocked_in_a_host_call_is_given_back_too() {
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
fn an_attempt_that_ends_within_the_grace_period_is_recorded() {
    let home = Home::new("[worker]\nshutdown_grace = \"1h\"\n");
    home.plugin("sleep", "sleep");
    let id = home.enqueue("sleep", r#"{"ms": 1500}"#, &[]);
    let daemon = home.daemon();
    home.await_status(&id, "running");
    daemon.stop();
    assert_eq!(home.show(&id)["status"], "completed");
}

/// How long a process has computed, in hundredths of a second.
#[cfg(target_os = "linux")]
fn computed(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// The settings are so long that the daemon is still reading them when the signals come.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_during_startup_stops_the_daemon() {
    let types = (0..60_000).map(|number| format!("[jobs.t{number}]\ntimeout = \"5s\"\n"));
    let home = Home::new(&types.collect::<String>());
    let mut daemon = home.spawn();
    eventually("it to have begun", || (computed(daemon.pid()) > 10).then_some(()));
    daemon.signal("HUP");
    daemon.signal("TERM");
    assert!(daemon.await_end().success(), "a signal that nobody listened to has ended it");
    assert!(!daemon.log().contains("ready"), "the signals came when it had started");
}

/// A loop in a file with so many lines that it takes a while to find the one it is in.
fn loop_with_lines() -> Vec<u8> {
    let text = module_doing("", "(loop $again (br $again))");
    let lines = "\n nop".repeat(150_000);
    let text = format!("{}\n (func $lines {lines}))", text.trim_end().strip_suffix(')').unwrap());
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(wat::GenerateDwarf::Full);
    embed(parser.parse_str(Some("loop.wat".as_ref()), &text).unwrap())
}

#[test]
fn many_guests_with_debug_information_are_given_back_in_time() {
    let grace = Duration::from_secs(1);
    let home = Home::new("[worker]\nconcurrency = 16\nshutdown_grace = \"1s\"\n[defaults]\ntimeout = \"1h\"\n");
    home.plugin_bytes("spin", &loop_with_lines());
    (0..16).for_each(|_| _ = home.enqueue("spin", "{}", &[]));
    let mut daemon = home.daemon();
    await_running(&home, 16);
    let asked = Instant::now();
    daemon.signal("TERM");
    assert!(daemon.await_end().success());
    assert!(asked.elapsed() < grace + Duration::from_secs(1) + SLACK, "{:?}", asked.elapsed());
    assert_given_back(&home, 16);
}
