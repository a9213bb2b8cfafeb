//! `jobq plugin` beyond its output: exit codes after signals, the cache, the files it creates.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, guest};

#[test]
fn ctrl_c_stops_the_guest() {
    let home = Home::new("");
    let payload = r#"{"stderr": "it has begun\n", "sleep_ms": 600000}"#;
    let guest = guest("program").display().to_string();
    let args = ["plugin", "run", &guest, payload, "--timeout", "10m"];
    let mut child = home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "stderr it has begun\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.starts_with("cancelled after "), "{rest}");
}

#[test]
fn a_panic_shows_its_message_and_the_functions_of_the_guest() {
    let home = Home::new("");
    let said = home.jobq(&["plugin", "run", &guest("panic").display().to_string(), r#"{"message": "on fire"}"#]);
    assert_eq!((said.code, said.stdout.as_str()), (100, ""));
    let error = said.stderr.split_once("error: ").unwrap().1;
    let [text, frame, next] =
        ["on fire", "\n  at panic::inner_step", "trapped after "].map(|part| error.find(part).expect(part));
    assert!(text < frame && frame < next, "{error}");
    assert!(!error.contains("at std::"), "the machinery of a panic is left out: {error}");
}

#[test]
fn compiled_code_is_cached_in_the_project() {
    let home = Home::new("");
    let run = |home: &Home| {
        let said = home.jobq(&["plugin", "run", &guest("echo").display().to_string(), "1"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "{said:?}");
    };
    fs::write(home.path("jobq.toml"), "").unwrap();
    run(&home);
    let kept = fs::read_dir(home.path(".jobq/cache")).unwrap().count();
    assert_eq!(kept, 2, "code and sum");
    let inspected = home.jobq(&["plugin", "inspect", &guest("echo").display().to_string()]);
    assert!(inspected.stdout.contains("ms, from the cache"), "{}", inspected.stdout);

    let bare = Home::new("");
    fs::remove_file(bare.path("jobq.toml")).unwrap();
    run(&bare);
    let left: Vec<_> = fs::read_dir(bare.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["plugins"]);
}

#[test]
fn a_new_plugin_contains_its_name() {
    let home = Home::new("");
    let said = home.jobq(&["plugin", "new", "count-words", "--lang", "c", "--program", "--dir", "plugins"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fs::read_to_string(home.path("plugins/count-words/README.md")).unwrap().contains("count-words"));
    let left: Vec<_> = fs::read_dir(home.path("plugins")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["count-words"], "no temporary files are left");
}

#[test]
fn existing_files_are_not_touched() {
    let home = Home::new("");
    fs::create_dir(home.path("mine")).unwrap();
    fs::write(home.path("mine/notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", home.path("link")).unwrap();
    for name in ["mine", "link"] {
        let said = home.jobq(&["plugin", "new", name, "--lang", "c", "--program"]);
        assert_eq!((said.code, said.stdout.as_str()), (4, ""), "{said:?}");
    }
    assert_eq!(fs::read_dir(home.path("mine")).unwrap().count(), 1);
    assert_eq!(fs::read_link(home.path("link")).unwrap().to_str(), Some("nowhere"));
}

#[test]
fn an_unknown_language_lists_the_known_ones() {
    let home = Home::new("");
    let said = home.jobq(&["plugin", "new", "x", "--lang", "cobol"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("invalid value 'cobol'") && said.stderr.contains("possible values: "), "{said:?}");
    assert!(!home.path("x").exists());
}

#[test]
fn native_code_in_the_plugin_directory_is_reported_and_never_run() {
    let home = Home::new("");
    fs::write(home.path("plugins/fast.cwasm"), "\x7fELF").unwrap();
    home.plugin_bytes("fake", b"\x7fELF\x02\x01\x01");
    let said = home.jobq(&["check"]);
    assert_eq!(said.code, 5);
    assert!(said.stdout.contains("note: `fast.cwasm` serves nothing: native code is never loaded"), "{}", said.stdout);
    assert!(said.stdout.contains("plugin `fake.wasm` of type `fake`: this is native code"), "{}", said.stdout);
}

/// Runs a command with executable memory forbidden as by `MemoryDenyWriteExecute`; exits with 99 if the system can't do that.
const FORBID_EXECUTABLE_MEMORY: &str = "\
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0: sys.exit(99)
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn a_system_that_forbids_executable_memory_is_named_as_the_reason() {
    let home = Home::new("");
    let guest = guest("echo").display().to_string();
    let args = ["-c", FORBID_EXECUTABLE_MEMORY, env!("CARGO_BIN_EXE_jobq"), "plugin", "run", &guest, "1"];
    let Ok(output) = Command::new("python3").args(args).current_dir(home.path("")).output() else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(99) {
        assert_eq!(output.status.code(), Some(5), "{stderr}");
        assert!(stderr.contains("forbids executable memory") && !stderr.contains("not valid"), "{stderr}");
    }
}

#[test]
fn a_database_path_longer_than_sqlite_allows_is_named_as_the_reason() {
    let home = Home::new("");
    let dir = ["d"; 3].map(|letter| letter.repeat(200)).join("/");
    fs::create_dir_all(home.path(&dir)).unwrap();
    fs::write(home.path("jobq.toml"), format!("[queue]\ndatabase = \"{dir}/jobq.db\"\n")).unwrap();
    let said = home.jobq(&["enqueue", "any", "{}", "--force"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.stderr.contains("the path of the database has ") && said.stderr.contains("SQLite allows 512"),
        "{said:?}"
    );
}

#[test]
fn a_cache_directory_that_cannot_be_used_is_noted_by_check() {
    let home = Home::new("");
    fs::write(home.path("jobq.toml"), "[plugins]\ncache_dir = \"file/cache\"\n").unwrap();
    fs::write(home.path("file"), "").unwrap();
    home.plugin("e", "echo");
    let check = home.jobq(&["check"]);
    assert!(check.stdout.contains("the cache directory `"), "{}", check.stdout);
    assert!(check.stdout.contains("file/cache` is not used, so plugins are compiled every time: "), "{}", check.stdout);
}
