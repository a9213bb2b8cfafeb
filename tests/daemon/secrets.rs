//! Secrets in a daemon: only the guest gets them. No file, log or command output contains one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::home::Home;

const IN_VARIABLE: &str = "from-the-variable-hunter2";
const IN_FILE: &str = "from-the-file-hunter2";

fn home() -> Home {
    let home = Home::new(
        "[defaults]\nmax_attempts = 1\n[jobs.env]\nsecrets = { A = { env = \"THE_SECRET\" }, B = { file = \"b\" } }\n\
         [jobs.answers]\nsecrets = { B = { file = \"b\" } }\n[jobs.panic]\nsecrets = { B = { file = \"b\" } }\n",
    );
    write(&home, IN_FILE);
    home.plugin("env", "env").plugin("answers", "answers").plugin("panic", "panic");
    home
}

fn write(home: &Home, value: &str) {
    fs::write(home.path("b"), format!("{value}\n")).unwrap();
    fs::set_permissions(home.path("b"), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn no_stored_or_printed_text_contains_a_secret() {
    let home = home();
    let daemon = home.daemon_with(&[
        ("THE_SECRET", IN_VARIABLE),
        ("JOBQ_LOG", "debug,wasmtime_wasi=trace,wasmtime_wasi_http=trace"),
    ]);
    let seen = home.jobq(&["enqueue", "env", "{}", "--wait=100s"]);
    assert!(seen.stdout.contains(r#""A":"[secret A]""#) && seen.stdout.contains(r#""B":"[secret B]""#), "{seen:?}");
    let panicked = home.jobq(&["enqueue", "panic", "{\"message\":\"m\"}", "--wait=100s"]);
    assert_eq!(panicked.code, 100, "{panicked:?}");
    let mut shown = vec![daemon.log(), seen.stdout + &seen.stderr];
    for id in [seen.stderr.lines().next().unwrap(), panicked.stderr.lines().next().unwrap()] {
        for command in [&["show", id][..], &["show", id, "-o", "json"], &["logs", id]] {
            let said = home.jobq(command);
            shown.push(said.stdout + &said.stderr);
        }
    }
    for command in [&["list"][..], &["plugin", "list"], &["status"], &["check"]] {
        let said = home.jobq(command);
        shown.push(said.stdout + &said.stderr);
    }
    shown.iter().for_each(|text| assert!(!text.contains("hunter2"), "{text}"));
    let of_queue = fs::read_dir(home.path(".")).unwrap().map(|entry| entry.unwrap().path());
    let of_queue: Vec<_> = of_queue.filter(|path| path.to_string_lossy().contains("jobq.db")).collect();
    assert!(of_queue.len() >= 2, "the database and its log: {of_queue:?}");
    for path in of_queue {
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{}", path.display());
    }
    daemon.stop();
}

#[test]
fn a_reload_reads_the_file_again() {
    let home = home();
    let mut daemon = home.daemon_with(&[("THE_SECRET", IN_VARIABLE)]);
    let answer = |message: &str| {
        let payload = json!({"do": "ok", "message": message}).to_string();
        home.jobq(&["enqueue", "answers", &payload, "--wait=100s"]).stdout
    };
    assert_eq!(answer(&format!("\"{IN_FILE}\"")), "\"[secret B]\"\n");
    write(&home, "another-value");
    daemon.signal("HUP");
    daemon.await_line("settings reloaded");
    assert_eq!(answer("\"another-value\""), "\"[secret B]\"\n");
    fs::remove_file(home.path("b")).unwrap();
    daemon.signal("HUP");
    daemon.await_line("nothing was changed");
    assert!(daemon.log().contains("the secret `B` of `answers` cannot be read"), "{}", daemon.log());
    assert_eq!(answer("\"another-value\""), "\"[secret B]\"\n", "what was read before still holds");
    daemon.stop();
}

#[test]
fn only_commands_that_run_guests_need_secrets() {
    let home = home();
    for command in [&["run"][..], &["check"]] {
        let said = home.jobq(command);
        assert_eq!(said.code, if command == ["run"] { 2 } else { 5 }, "{said:?}");
        let text = said.stdout + &said.stderr;
        assert!(text.contains("the secret `A` of `env` is not set") && text.contains("THE_SECRET"), "{text}");
        assert_eq!(text.contains("types that can be served: answers, env, panic"), command == ["check"], "{text}");
    }
    let id = home.enqueue("env", "{}", &[]);
    assert_eq!(home.jobq(&["list"]).code, 0);
    assert_eq!(home.show(&id)["status"], "pending");

    let env = home.path("plugins/env.wasm").display().to_string();
    let said = home.jobq(&["plugin", "inspect", &env, "-o", "json"]);
    let inspected: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let imports = inspected["imports"].as_array().unwrap();
    let named = |import: &&serde_json::Value| {
        import["interface"].as_str().is_some_and(|name| name.starts_with("wasi:cli/environment"))
    };
    let environment = imports.iter().find(named).unwrap();
    assert_eq!(environment["access"]["is"], "granted", "{environment}");
    assert_eq!(home.jobq(&["plugin", "run", &env, "{}"]).code, 2, "it runs guests");
}
