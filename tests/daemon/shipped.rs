//! The plugins that ship, with their settings and sample files, as a user first runs them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::home::Home;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A home with the repository's settings, sample files and plugins; CI points `JOBQ_TEST_PLUGINS` to freshly built ones.
fn home() -> Home {
    let home = Home::new("");
    let settings = fs::read_to_string(repository("jobq.toml")).unwrap();
    let plugins = std::env::var_os("JOBQ_TEST_PLUGINS").map_or_else(|| repository("plugins"), PathBuf::from);
    for name in ["process_csv", "send_email", "generate_report", "flaky", "thumbnail", "webhook"] {
        home.plugin_bytes(name, &fs::read(plugins.join(format!("{name}.wasm"))).unwrap());
    }
    for dir in ["examples/data", "examples/images", "examples/outbox", "examples/reports"] {
        fs::create_dir_all(home.path(dir)).unwrap();
    }
    for file in ["examples/request.json", "examples/data/sales.csv", "examples/images/sunset.jpg"] {
        fs::copy(repository(file), home.path(file)).unwrap();
    }
    fs::write(home.path("jobq.toml"), settings).unwrap();
    home
}

#[test]
fn the_sample_request_is_totalled_a_mail_is_written_and_a_report_made() {
    let home = home();
    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "process_csv", "@examples/request.json", "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    let totals: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&totals["rows"], &totals["total"]), (&Value::from(338), &Value::from("26540.41")));

    let mail = r#"{"to": "ana@example.com", "subject": "¡Hola!", "text": "Bienvenida"}"#;
    let said = home.jobq(&["enqueue", "send_email", mail, "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    let id = said.stderr.lines().next().unwrap();
    let message = fs::read_to_string(home.path(&format!("examples/outbox/{id}.eml"))).unwrap();
    assert!(message.contains("To: ana@example.com") && message.contains("From: noreply@example.com"), "{message}");

    let said = home.jobq(&["enqueue", "generate_report", r#"{"path": "sales.csv"}"#, "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    let report = fs::read_dir(home.path("examples/reports")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read_to_string(report).unwrap().contains("540.41"));
    daemon.stop();
}

#[test]
fn a_thumbnail_is_made_of_a_photograph() {
    let home = home();
    let daemon = home.daemon();
    let payload = r#"{"input": "sunset.jpg", "max_width": 200, "max_height": 200, "output": "small/sunset.png"}"#;
    let said = home.jobq(&["enqueue", "thumbnail", payload, "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    let made: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&made["width"], &made["height"]), (&Value::from(200), &Value::from(150)));
    let png = fs::read(home.path("examples/images/small/sunset.png")).unwrap();
    assert_eq!(Value::from(png.len()), made["bytes"]);
    // Width and height stand where every PNG has them.
    assert_eq!(png[16..24], [0, 0, 0, 200, 0, 0, 0, 150]);
    daemon.stop();
}

#[test]
fn a_webhook_that_is_not_granted_is_dead_and_names_the_grant() {
    let home = home();
    let daemon = home.daemon();
    let payload = r#"{"url": "https://hooks.example.org/orders?key=hunter2", "body": {"order": 17}}"#;
    let said = home.jobq(&["enqueue", "webhook", payload, "--wait=100s"]);
    assert_eq!(said.code, 100, "{said:?}");
    let message = "POST https://hooks.example.org is not granted; \
                   jobq.toml grants it with http = [\"https://hooks.example.org\"] under [jobs.webhook]";
    assert!(said.stderr.contains(message) && !said.stderr.contains("hunter2"), "{said:?}");
    daemon.stop();
}

/// The origins of webhooks are the user's to name.
#[test]
fn check_finds_nothing_wrong_with_them_and_notes_the_webhook() {
    let said = home().jobq(&["check"]);
    assert_eq!(said.code, 0, "{said:?}");
    let webhook = "type `webhook` imports wasi:http";
    assert!(said.stdout.contains("0 problems, 1 note") && said.stdout.contains(webhook), "{said:?}");
}

/// An application adds what it wants to its payloads, such as the id of its customer.
#[test]
fn they_ignore_unknown_fields() {
    let home = home();
    let daemon = home.daemon();
    let extra = r#""customer": {"id": 42}"#;
    for (job_type, fields) in [
        ("flaky", ""),
        ("send_email", r#""to": "ana@example.com", "subject": "S", "text": "T", "#),
        ("process_csv", r#""path": "sales.csv", "format": "monthly", "#),
        ("generate_report", r#""path": "sales.csv", "#),
        ("thumbnail", r#""input": "sunset.jpg", "#),
    ] {
        let id = home.enqueue(job_type, &format!("{{{fields}{extra}}}"), &[]);
        home.await_status(&id, "completed");
    }
    daemon.stop();
}
