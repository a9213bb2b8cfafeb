//! Outgoing requests of handlers in a daemon.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::home::{Home, eventually};

/// Starts a server with a certificate of a private authority; returns the authority as PEM and the port.
fn private_authority() -> (String, u16) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let mut head = [0; 1024];
            _ = stream.read(&mut head);
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ntrusted");
            stream.conn.send_close_notify();
            _ = stream.flush();
        }
    });
    (authority_pem, port)
}

#[test]
fn a_certificate_authority_of_the_system_is_trusted() {
    let (authority, port) = private_authority();
    let url = format!("https://127.0.0.1:{port}");
    let home = Home::new(&format!("[defaults]\nmax_attempts = 1\n[jobs.http]\nhttp = [\"{url}\"]\n"));
    home.plugin("http", "http");
    std::fs::write(home.path("authority.pem"), authority).unwrap();
    let pem = home.path("authority.pem").display().to_string();
    let daemon = home.daemon_with(&[("SSL_CERT_FILE", &pem)]);
    let said = home.jobq(&["enqueue", "http", &json!({"url": url}).to_string(), "--wait=100s"]);
    assert!(said.stdout.contains(r#""status":200"#) && said.stdout.contains("trusted"), "{said:?}");
    daemon.stop();

    let daemon = home.daemon();
    let said = home.jobq(&["enqueue", "http", &json!({"url": url}).to_string(), "--wait=100s"]);
    assert!(said.stdout.contains("TlsCertificateError"), "{said:?}");
    daemon.stop();
}

#[test]
fn cancelling_a_job_closes_its_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let home = Home::new(&format!("[defaults]\ntimeout = \"1h\"\n[jobs.http]\nhttp = [\"{url}\"]\n"));
    home.plugin("http", "http");
    let daemon = home.daemon();
    let id = home.enqueue("http", &json!({"url": url}).to_string(), &[]);
    let (mut stream, _) = listener.accept().unwrap();
    home.await_status(&id, "running");
    assert_eq!(home.jobq(&["cancel", &id]).code, 0);
    // Returns once the other side has closed. The guest ignores the cancellation and is stopped after a grace period.
    let mut request = Vec::new();
    _ = stream.read_to_end(&mut request);
    assert!(request.starts_with(b"GET / HTTP/1.1"), "{request:?}");
    daemon.stop();
}

#[test]
fn a_denial_is_in_the_log_of_the_job() {
    let home = Home::new("[jobs.http]\n");
    home.plugin("http", "http");
    let daemon = home.daemon();
    let id = home.enqueue("http", r#"{"url":"https://api.example.com/"}"#, &[]);
    home.await_status(&id, "completed");
    let line = eventually("the line", || {
        let log = home.jobq(&["logs", &id]).stdout;
        log.contains("denied").then_some(log)
    });
    assert!(line.contains(r#"`http = ["https://api.example.com"]` under `[jobs.http]` in jobq.toml"#), "{line}");
    daemon.stop();
}
