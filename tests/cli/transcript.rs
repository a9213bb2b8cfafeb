//! What a person sees, as snapshots: each command with what it printed on stdout and stderr, and its exit code.
//!
//! Ids are numbered in the order of their appearance, instants are all the same one; what differs by machine is replaced.
//! `INSTA_UPDATE=always cargo test transcript` accepts what is now: read it as a user before it is committed.

use std::fmt::Write;
use std::fs;

use super::standing;
use crate::home::{Home, Said};

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
        settings.add_filter(r"after \d+\.\d(ms|s)\n", "after [time]\n");
        settings.bind(|| insta::assert_snapshot!(name, self.text));
    }
}

/// UUIDs of version 7.
fn ids_in(line: &str) -> Vec<String> {
    let is_id = |word: &&str| word.len() == 36 && word.matches('-').count() == 4 && !word.starts_with("00000000-");
    let words = line.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
    words.filter(is_id).map(str::to_owned).collect()
}

const COMMANDS: [&[&str]; 26] = [
    &[],
    &["run"],
    &["demo"],
    &["enqueue"],
    &["status"],
    &["list"],
    &["show"],
    &["logs"],
    &["retry"],
    &["cancel"],
    &["cleanup"],
    &["check"],
    &["plugin"],
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
    home.plugin("follow", "follow").plugin("report", "echo").plugin_bytes("bad", b"hello");
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
