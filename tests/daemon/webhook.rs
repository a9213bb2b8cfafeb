//! The bundled webhook plugin against a real receiver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::home::Home;

/// Reads one request: its head in lower case, and its body.
fn receive(stream: &TcpStream) -> (String, String) {
    let (mut reader, mut head, mut length) = (BufReader::new(stream), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.to_ascii_lowercase();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_else(|| panic!("{head}"))
}

#[test]
fn a_webhook_is_retried_as_the_receiver_asks_with_the_same_key_and_a_signature() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let home = Home::new(&format!(
        "[jobs.webhook]\nhttp = [\"{origin}\"]\nsecrets = {{ WEBHOOK_SECRET = {{ env = \"THE_SECRET\" }} }}\n\
         backoff = {{ base = \"1h\", max = \"1h\", jitter = 0.0 }}\n"
    ));
    let shipped = std::env::var_os("JOBQ_TEST_PLUGINS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins"), PathBuf::from);
    home.plugin_bytes("webhook", &std::fs::read(shipped.join("webhook.wasm")).unwrap());
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let daemon = home.daemon_with(&[("THE_SECRET", secret)]);
    let payload = json!({"url": format!("{origin}/orders"), "body": {"order": 17}}).to_string();
    let id = home.enqueue("webhook", &payload, &[]);

    // The backoff is an hour, so the second attempt only comes because the receiver asks for it.
    let answers = ["429 Too Many Requests\r\nretry-after: 1", "200 OK"];
    let received = answers.map(|answer| {
        let (mut stream, _) = listener.accept().unwrap();
        let received = receive(&stream);
        stream.write_all(format!("HTTP/1.1 {answer}\r\ncontent-length: 2\r\n\r\nok").as_bytes()).unwrap();
        received
    });
    let job = home.await_status(&id, "completed");
    assert_eq!(job["attempts"], 2, "{job}");
    for (head, body) in &received {
        assert!(head.starts_with("post /orders http/1.1"), "{head}");
        assert_eq!(header(head, "idempotency-key"), id);
        assert!(header(head, "webhook-signature").starts_with("v1,"), "{head}");
        assert_eq!(body, r#"{"order":17}"#);
    }
    daemon.stop();
}
