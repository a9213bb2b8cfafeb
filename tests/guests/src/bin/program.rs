//! Proves that an ordinary WASI program is a handler: payload on stdin, result on stdout, exit status as the outcome.

use std::collections::BTreeMap;
use std::io::Write;

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Payload {
    /// Written as it is, nothing added.
    stdout: String,
    stderr: String,
    /// Write the environment to stdout, as a JSON object.
    env: bool,
    /// Write the payload to stdout, as it came.
    echo: bool,
    /// Panic with this text.
    panic: Option<String>,
    /// Sleep before the end.
    sleep_ms: u64,
    /// End by `exit` with this status, 0 included. Default: return from `main`.
    exit: Option<i32>,
}

fn main() {
    let text = std::io::read_to_string(std::io::stdin()).expect("stdin is text");
    let payload: Payload = serde_json::from_str(&text).expect("the payload is what this program takes");

    let mut stdout = std::io::stdout();
    write!(stdout, "{}", payload.stdout).expect("stdout takes it");
    if payload.echo {
        write!(stdout, "{text}").expect("stdout takes it");
    }
    if payload.env {
        let env: BTreeMap<String, String> = std::env::vars().collect();
        serde_json::to_writer(&mut stdout, &env).expect("stdout takes it");
    }
    stdout.flush().expect("stdout takes it");
    eprint!("{}", payload.stderr);

    std::thread::sleep(std::time::Duration::from_millis(payload.sleep_ms));
    if let Some(text) = payload.panic {
        panic!("{text}");
    }
    if let Some(status) = payload.exit {
        std::process::exit(status);
    }
}
