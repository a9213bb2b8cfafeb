//! What a person sees, as snapshots: each command with what it printed on stdout and stderr, and its exit code.
//!
//! Ids are numbered in the order of their appearance, instants are all the same one; what differs by machine is replaced.
//! `INSTA_UPDATE=always cargo test transcript` accepts what is now: read it as a user before it is committed.

use std::fmt::Write;
use std::fs;

use super::standing;
use crate::home::{Home, Said, guest};

/// Commands and what they said.
struct Transcript<'h> {
    home: &'h Home,
    ids: Vec<String>,
    text: String,
}

impl<'h> Transcript<'h> {
    fn of(home: &'h Home) -> Self {
        Self { home, ids: Vec::new(), text: String::new() }
    }

    fn run(&mut self, args: &[&str]) -> Said {
        let said = self.home.jobq(args);
        let quote = |arg: &&str| {
            if arg.is_empty() || arg.contains([' ', '"']) { format!("'{arg}'") } else { (*arg).to_owned() }
        };
        let line = args.iter().map(quote).collect::<Vec<_>>().join(" ");
        self.write(&format!("$ jobq {line}"));
        for (stream, mark) in [(&said.stdout, ""), (&said.stderr, "! ")] {
            stream.lines().for_each(|line| self.write(format!("{mark}{line}").trim_end()));
        }
        if said.code != 0 {
            self.write(&format!("= {}", said.code));
        }
        self.text.push('\n');
        said
    }

    /// Lines of stderr have a `!` in front of them.
    fn write(&mut self, line: &str) {
        let mut line = line.replace(&self.home.path("").display().to_string(), "[home]/");
        for id in ids_in(&line) {
            let at = self.ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                self.ids.push(id.clone());
                self.ids.len() - 1
            });
            line = line.replace(&id, &format!("00000000-0000-7000-8000-{:012}", at + 1));
        }
        let _ = writeln!(self.text, "{line}");
    }

    fn check(self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-01-02T03:04:05.678Z");
        settings.add_filter(r"(created_at|scheduled_at)( +\S+) \((now|\d+[sm] ago)\)", "$1$2 (now)");
        settings.add_filter(r"after \d+\.\d(ms|s)", "after [time]");
        settings.add_filter(r"fuel \S+ of", "fuel [fuel] of");
        settings.add_filter(r"memory \S+ [KM]iB of", "memory [memory] of");
        settings.add_filter(r"\b[0-9a-f]{64}\b", "[digest]");
        settings.add_filter(r"remaining_ms\W+\d+", "remaining_ms: 1");
        settings.add_filter(r"in \d+\.\dms, (compiled|from the cache)", "in [time], [compiled]");
        settings.add_filter("\"(duration_ms|load_ms|fuel|peak_memory_bytes)\": [0-9.]+", "\"$1\": 1");
        settings.bind(|| insta::assert_snapshot!(name, self.text));
    }
}

/// UUIDs of version 7.
fn ids_in(line: &str) -> Vec<String> {
    let is_id = |word: &&str| word.len() == 36 && word.matches('-').count() == 4 && !word.starts_with("00000000-");
    let words = line.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
    words.filter(is_id).map(str::to_owned).collect()
}

const COMMANDS: [&[&str]; 33] = [
    &[],
    &["run"],
    &["init"],
    &["demo"],
    &["enqueue"],
    &["status"],
    &["list"],
    &["show"],
    &["logs"],
    &["retry"],
    &["cancel"],
    &["delete"],
    &["wait"],
    &["cleanup"],
    &["check"],
    &["plugin"],
    &["plugin", "new"],
    &["plugin", "run"],
    &["plugin", "inspect"],
    &["plugin", "list"],
    &["bench"],
    &["bench", "throughput"],
    &["bench", "client"],
    &["bench", "latency"],
    &["bench", "scale"],
    &["bench", "idle"],
    &["bench", "start"],
    &["bench", "memory"],
    &["bench", "held"],
    &["bench", "fairness"],
    &["bench", "types"],
    &["completions"],
    &["man"],
];

#[test]
fn help() {
    let home = Home::new("");
    let mut transcript = Transcript::of(&home);
    for command in COMMANDS {
        let said = transcript.run(&[command, &["--help"]].concat());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{command:?}");
    }
    transcript.check("help");
}

#[test]
fn every_command_has_examples_in_its_help() {
    let home = Home::new("");
    for command in COMMANDS.iter().filter(|command| !matches!(command, [] | ["plugin"] | ["bench"])) {
        let said = home.jobq(&[command, &["--help"][..]].concat());
        assert!(said.stdout.contains(&format!("  jobq {}", command.join(" "))), "{command:?}");
        assert!(said.stdout.contains("Examples:"), "{command:?}");
    }
}

#[test]
fn tables() {
    let (home, jobs) = standing::home();
    let mut transcript = Transcript::of(&home);
    transcript.run(&["status"]);
    transcript.run(&["list"]);
    transcript.run(&["list", "--status", "dead"]);
    transcript.run(&["list", "--type", "report", "--limit", "1"]);
    transcript.run(&["list", "--type", "report", "--status", "dead"]);
    transcript.run(&["list", "--type", "send-email"]);
    for id in [&jobs.running, &jobs.dead, &jobs.completed, &jobs.pending] {
        transcript.run(&["show", id]);
    }
    transcript.run(&["logs", &jobs.dead]);
    transcript.run(&["logs", &jobs.pending]);
    transcript.run(&["plugin", "list"]);
    transcript.check("tables");
}

#[test]
fn json() {
    let (home, jobs) = standing::home();
    let mut transcript = Transcript::of(&home);
    transcript.run(&["status", "-o", "json"]);
    transcript.run(&["show", &jobs.dead, "-o", "json"]);
    transcript.run(&["list", "--status", "running", "-o", "json"]);
    transcript.run(&["list", "--status", "completed", "-o", "ndjson"]);
    transcript.run(&["list", "--type", "report", "--status", "dead", "-o", "json"]);
    transcript.run(&["logs", &jobs.dead, "-o", "ndjson"]);
    transcript.run(&["logs", &jobs.pending, "-o", "json"]);
    transcript.run(&["plugin", "list", "-o", "json"]);
    transcript.check("json");
}

#[test]
fn enqueue() {
    let home = Home::new("[jobs.send_email]\nmax_timeout = \"1m\"\n");
    home.plugin("send_email", "echo");
    let mut transcript = Transcript::of(&home);
    transcript.run(&["enqueue", "send_email", "{}", "--key", "welcome-42"]);
    transcript.run(&["enqueue", "send_email", "{}", "--key", "welcome-42"]);
    transcript.run(&["enqueue", "send_email", "{}", "-o", "json"]);
    transcript.run(&["enqueue", "send_email", "{}", "--wait=50ms"]);
    transcript.run(&["enqueue", "sendemail", "{}"]);
    transcript.run(&["enqueue", "invoice", "{}"]);
    transcript.run(&["enqueue", "send email", "{}"]);
    transcript.run(&["enqueue", "send_email", "{'to': 1}"]);
    transcript.run(&["enqueue", "send_email", "@request.json"]);
    transcript.run(&["enqueue", "send_email", "--timeout", "2m"]);
    transcript.run(&["enqueue", "send_email", "--in", "soon"]);
    transcript.run(&["enqueue", "send_email", "--at", "tomorrow"]);
    transcript.run(&["enqueue", "send_email", "--wait=soon"]);
    transcript.run(&["enqueue", "send_email", "--priority", "high"]);
    transcript.run(&["enqueue"]);
    fs::write(home.path("many.ndjson"), "{\"type\": \"send_email\"}\n{\"type\": \"sendemail\"}\n{\"typ\": 1}\nx\n")
        .unwrap();
    transcript.run(&["enqueue", "--bulk", "many.ndjson"]);
    fs::write(
        home.path("many.ndjson"),
        "{\"type\": \"send_email\", \"key\": \"welcome-42\"}\n{\"type\": \"send_email\"}\n",
    )
    .unwrap();
    transcript.run(&["enqueue", "--bulk", "many.ndjson"]);
    transcript.check("enqueue");
}

#[test]
fn retry_and_cancel() {
    let (home, jobs) = standing::home();
    let mut transcript = Transcript::of(&home);
    transcript.run(&["retry"]);
    transcript.run(&["retry", "--dry-run"]);
    transcript.run(&["retry", "--status", "completed"]);
    transcript.run(&["retry", &jobs.dead, "--all"]);
    transcript.run(&["retry", "--type", "sendemail"]);
    transcript.run(&["retry", "--all", "--dry-run"]);
    transcript.run(&["retry", "--all", "--status", "cancelled", "--dry-run"]);
    transcript.run(&["retry", "--type", "send_email", "--older-than", "6h"]);
    transcript.run(&["retry", "--before", "2026-01-01", "--dry-run", "-o", "json"]);
    transcript.run(&["retry", "--all"]);
    transcript.run(&["retry", &jobs.failed]);
    transcript.run(&["retry", &jobs.completed, "nobody", &jobs.cancelled]);
    transcript.run(&["cancel"]);
    transcript.run(&["cancel", "--status", "dead"]);
    transcript.run(&["cancel", "--all", "--dry-run"]);
    transcript.run(&["cancel", "--status", "running", "--type", "report"]);
    transcript.run(&["cancel", "--all", "-o", "json"]);
    transcript.run(&["cancel", &jobs.dead]);
    transcript.run(&["retry", &jobs.dead, "nobody", "-o", "ndjson"]);
    transcript.check("retry_and_cancel");
}

#[test]
fn cleanup() {
    let (home, _) = standing::home();
    let mut transcript = Transcript::of(&home);
    transcript.run(&["cleanup", "--status", "pending"]);
    transcript.run(&["cleanup", "--older-than", "yesterday"]);
    transcript.run(&["cleanup", "--older-than", "3h", "--dry-run"]);
    transcript.run(&["cleanup", "--older-than", "0s", "--status", "dead", "--dry-run", "-o", "json"]);
    transcript.run(&["cleanup", "--dry-run"]);
    transcript.run(&["cleanup"]);
    transcript.run(&["cleanup", "--older-than", "0s", "--status", "dead", "--status", "completed"]);
    transcript.run(&["status"]);
    transcript.check("cleanup");
}

#[test]
fn check() {
    let home = Home::new(
        "[jobs.report]\nplugin = \"reports.wasm\"\ndirs = [{ host = \"outbox\", guest = \"/out\" }]\n\n[jobs.follow]\nhttp = [\"https://api.example.com\"]\n",
    );
    let program = wat::parse_str(PROGRAM).unwrap();
    home.plugin_bytes("follow", &program).plugin("report", "echo").plugin_bytes("bad", b"hello");
    let mut transcript = Transcript::of(&home);
    transcript.run(&["check"]);
    transcript.run(&["check", "-o", "json"]);
    home.configure("[worker]\nleese = \"15s\"\nconcurrency = -1\n");
    transcript.run(&["check"]);
    transcript.run(&["check", "-o", "ndjson"]);
    transcript.run(&["status"]);
    let home = Home::new("[jobs.echo]\n");
    home.plugin("echo", "echo");
    transcript.home = &home;
    transcript.run(&["check"]);
    fs::remove_dir_all(home.path("plugins")).unwrap();
    fs::remove_file(home.path("jobq.toml")).unwrap();
    transcript.run(&["check"]);
    transcript.check("check");
}

#[test]
fn init() {
    let home = Home::new("");
    fs::remove_file(home.path("jobq.toml")).unwrap();
    fs::remove_dir(home.path("plugins")).unwrap();
    let mut transcript = Transcript::of(&home);
    transcript.run(&["init"]);
    transcript.run(&["check"]);
    transcript.run(&["init"]);
    transcript.run(&["init", "other"]);
    transcript.run(&["init", "more", "-o", "json"]);
    transcript.check("init");
}

#[test]
fn plugin_run() {
    let home = Home::new("[jobs.follow]\nenqueue = [\"next\"]\nmax_attempts = 5\n[jobs.short]\nfuel = 10000\n");
    for name in ["answers", "context", "echo", "follow", "program", "spin", "trap_start", "world_other"] {
        fs::copy(guest(name), home.path(&format!("{name}.wasm"))).unwrap();
    }
    home.plugin("answers", "answers");
    let mut transcript = Transcript::of(&home);
    let answer = |text: &str| format!("{{\"do\": {text}}}");
    transcript.run(&["plugin", "run", "echo.wasm", "{\"n\": 2}"]);
    transcript.run(&["plugin", "run", "echo.wasm"]);
    transcript.run(&["plugin", "run", "program.wasm", "{\"stdout\": \"out\", \"stderr\": \"a word\", \"exit\": 3}"]);
    transcript.run(&["plugin", "run", "plugins/answers.wasm", &answer("\"retry\", \"message\": \"not now\"")]);
    let last = ["plugin", "run", "answers.wasm", &answer("\"retry\""), "--attempt", "2", "--max-attempts", "2"];
    transcript.run(&last);
    transcript.run(&["plugin", "run", "answers.wasm", &answer("\"retry-after\", \"ms\": 90000")]);
    transcript.run(&["plugin", "run", "answers.wasm", &answer("\"snooze\", \"ms\": 60000")]);
    transcript.run(&["plugin", "run", "answers.wasm", &answer("\"fatal\", \"message\": \"no such user\"")]);
    transcript.run(&["plugin", "run", "trap_start.wasm"]);
    transcript.run(&["plugin", "run", "spin.wasm", "--timeout", "500ms"]);
    transcript.run(&["plugin", "run", "spin.wasm", "--type", "short"]);
    let jobs = r#"{"jobs": [{"type": "next", "payload": "{}", "delay_ms": 5000, "priority": 3, "max_attempts": 2, "unique_key": "k"}, {"type": "other"}]"#;
    transcript.run(&["plugin", "run", "follow.wasm", &format!("{jobs}}}")]);
    transcript.run(&["plugin", "run", "follow.wasm", &format!("{jobs}, \"then\": \"retry\"}}")]);
    transcript.run(&["plugin", "run", "follow.wasm", &format!("{jobs}}}"), "--type", "echo"]);
    transcript.run(&["plugin", "run", "context.wasm", "1", "--attempt", "4", "-o", "json"]);
    transcript.run(&["plugin", "run", "world_other.wasm"]);
    transcript.run(&["plugin", "run", "anwsers.wasm"]);
    transcript.run(&["plugin", "run", "echo.wasm", "{'n': 2}"]);
    transcript.run(&["plugin", "run", "echo.wasm", "--type", "a b"]);
    transcript.run(&["plugin", "run", "echo.wasm", "--type", "folow"]);
    transcript.run(&["plugin", "run", "echo.wasm", "--timeout", "0s"]);
    assert!(!home.path("jobq.db").exists(), "no queue was made");
    transcript.check("plugin_run");
}

#[test]
fn plugin_run_cases() {
    let home = Home::new("");
    for name in ["answers", "echo"] {
        fs::copy(guest(name), home.path(&format!("{name}.wasm"))).unwrap();
    }
    let mut transcript = Transcript::of(&home);
    let mut cases = |guest: &str, lines: &str, more: &[&str]| {
        fs::write(home.path("cases.ndjson"), lines).unwrap();
        transcript.run(&[&["plugin", "run", guest, "@cases.ndjson"], more].concat());
    };
    cases("echo.wasm", "1\n\n{\"payload\": {\"a\": 1}, \"expect\": {\"a\": 1.0}, \"name\": \"numbers\"}\n", &[]);
    let answers = r#"{"payload": {"do": "ok", "message": "done"}, "expect": "done"}
{"payload": {"do": "ok", "message": "{\"n\": 4}"}, "expect": {"n": 5}}
{"payload": {"do": "fatal", "message": "no such user"}, "expect": {"outcome": "failed", "fatal": true, "error": "user"}}
{"payload": {"do": "fatal", "message": "no such user"}, "expect": {"outcome": "failed", "error": "mailbox"}}
{"payload": {"do": "fatal"}, "expect": {"outcome": "failed", "fatal": false}}
{"payload": {"do": "snooze", "ms": 5}, "expect": {"outcome": "snoozed", "after_ms": 6}}
{"payload": {"do": "retry", "times": 1, "message": "ok"}, "expect": "ok", "attempt": 2}
{"do": "retry", "message": "not now"}
"#;
    cases("answers.wasm", answers, &[]);
    cases("answers.wasm", answers.lines().next().unwrap(), &["-o", "json"]);
    cases("answers.wasm", answers, &["-o", "ndjson", "--type", "x y"]);
    cases("echo.wasm", "1\n{\"a\": }\n[1\n{\"payload\": 1, \"expect\": {\"outcome\": \"trap\"}}\n", &[]);
    cases("echo.wasm", "\n", &[]);
    transcript.check("plugin_run_cases");
}

/// A program that imports something of each kind, in the text of components.
const PROGRAM: &str = r#"(component
    (import "wasi:cli/environment@0.2.0" (instance (export "get-environment" (func (result (list (tuple string string)))))))
    (import "jobq:handler/log@0.1.0" (instance))
    (import "jobq:handler/queue@0.1.0" (instance))
    (import "wasi:filesystem/preopens@0.2.3" (instance))
    (import "wasi:sockets/tcp@0.2.0" (instance))
    (core module $m
        (@producers (language "C11" "") (processed-by "clang" "22.1.0"))
        (memory 20)
        (func (export "run") (result i32) (i32.const 0)))
    (core instance $i (instantiate $m))
    (func $run (result (result)) (canon lift (core func $i "run")))
    (instance $exported (export "run" (func $run)))
    (export "wasi:cli/run@0.2.0" (instance $exported)))"#;

#[test]
fn plugin_inspect() {
    let home = Home::new(
        "[jobs.clerk]\nenqueue = [\"mail\"]\nenv = { CURRENCY = \"EUR\" }\n[jobs.small]\nmemory = \"1MiB\"\nfuel = \"unlimited\"\n",
    );
    fs::write(home.path("clerk.wasm"), wat::parse_str(PROGRAM).unwrap()).unwrap();
    fs::write(home.path("plain.wasm"), wat::parse_str(r#"(module (func $main (export "_start")))"#).unwrap()).unwrap();
    fs::copy(guest("world_other"), home.path("world_other.wasm")).unwrap();
    fs::write(home.path("text.wasm"), "hello\n").unwrap();
    fs::create_dir(home.path("dir.wasm")).unwrap();
    std::os::unix::fs::symlink("loop.wasm", home.path("loop.wasm")).unwrap();
    fs::File::create(home.path("large.wasm")).unwrap().set_len(300 << 20).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(home.path("pipe.wasm")).status().unwrap().success());
    let mut transcript = Transcript::of(&home);
    for file in ["clerk", "plain", "world_other", "text", "dir", "loop", "large", "pipe", "none"] {
        transcript.run(&["plugin", "inspect", &format!("{file}.wasm")]);
    }
    transcript.run(&["plugin", "inspect", "clerk.wasm", "--type", "small"]);
    transcript.run(&["plugin", "inspect", "clerk.wasm", "-o", "json"]);
    transcript.check("plugin_inspect");
}

#[test]
fn plugin_new() {
    let home = Home::new("");
    fs::create_dir(home.path("empty")).unwrap();
    fs::write(home.path("file"), "mine").unwrap();
    let mut transcript = Transcript::of(&home);
    transcript.run(&["plugin", "new", "count-words", "--lang", "c", "--program"]);
    transcript.run(&["plugin", "new", "count-words", "--lang", "c", "--program"]);
    transcript.run(&["plugin", "new", "file", "--lang", "c", "--program"]);
    transcript.run(&["plugin", "new", "empty", "--lang", "c", "--program", "-o", "ndjson"]);
    transcript.run(&["plugin", "new", "sum", "--lang", "c", "--program", "--dir", "nowhere"]);
    for name in [".hidden", "..", "a/b", "two words"] {
        transcript.run(&["plugin", "new", name, "--lang", "c", "--program"]);
    }
    transcript.run(&["plugin", "new", "--lang", "c", "--program", "--", "-rf"]);
    transcript.check("plugin_new");
}

#[test]
fn errors() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let mut transcript = Transcript::of(&home);
    transcript.run(&["lst"]);
    transcript.run(&["status"]);
    transcript.run(&["status", "--config", "nowhere.toml"]);
    transcript.run(&["status", "-o", "yaml"]);
    transcript.run(&["list", "--status", "ded"]);
    transcript.run(&["list", "--limit", "many"]);
    home.enqueue("echo", "1", &[]);
    transcript.run(&["show", "nobody"]);
    transcript.run(&["show"]);
    transcript.run(&["logs", "nobody", "-f"]);
    transcript.run(&["logs", "nobody", "-f", "-o", "json"]);
    transcript.run(&["completions", "csh"]);
    transcript.run(&["man", "--dir", "jobq.toml"]);
    home.sql().execute("UPDATE jobq_queues SET version = 1000", []).unwrap();
    transcript.run(&["status"]);
    fs::write(home.path("jobq.db"), "not a database at all, but long enough to look at".repeat(20)).unwrap();
    transcript.run(&["list"]);
    transcript.check("errors");
}
