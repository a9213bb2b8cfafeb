//! Outgoing requests: where they may go, and what hostile servers and guests can do.
//!
//! The servers run in this process, so the tests see their connections, their bytes, and when the other side closes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobq::sandbox::{GuestOutcome, HttpGrant, Source};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ServerConfig, pki_types::PrivateKeyDer};

use super::support::{PATIENCE, Run};

/// A server on a port of its own.
struct Server {
    address: SocketAddr,
    /// The number of connections.
    seen: Arc<AtomicUsize>,
    /// Gets a message for each connection that the other side has closed.
    closed: UnboundedReceiver<()>,
}

/// What a server does with a connection.
type Conduct = Arc<dyn Fn(TcpStream, UnboundedSender<()>) -> tokio::task::JoinHandle<()> + Send + Sync>;

impl Server {
    async fn at(ip: impl Into<std::net::IpAddr>, conduct: Conduct) -> Self {
        let listener = TcpListener::bind(SocketAddr::new(ip.into(), 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (seen, (tell, closed)) = (Arc::new(AtomicUsize::new(0)), unbounded_channel());
        tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    seen.fetch_add(1, Ordering::SeqCst);
                    conduct(stream, tell.clone());
                }
            }
        });
        Self { address, seen, closed }
    }

    /// Reads the head of a request, writes `answer`, and closes.
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::doing(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                head_of(&mut stream).await;
                _ = stream.write_all(&answer).await;
                _ = stream.shutdown().await;
                _ = stream.read_to_end(&mut Vec::new()).await;
            }
        })
        .await
    }

    async fn doing<F: Future<Output = ()> + Send + 'static>(
        conduct: impl Fn(TcpStream, UnboundedSender<()>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, Arc::new(move |stream, tell| tokio::spawn(conduct(stream, tell)))).await
    }

    /// Reads the head of a request, writes `begin`, and then waits for the other side to close.
    async fn stalling(begin: &'static [u8]) -> Self {
        Self::doing(move |mut stream, tell| async move {
            head_of(&mut stream).await;
            _ = stream.write_all(begin).await;
            until_closed(&mut stream).await;
            _ = tell.send(());
        })
        .await
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    fn http(&self) -> String {
        self.url("http")
    }

    fn connections(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    /// Waits for the first connection.
    async fn is_reached(&self) {
        let reached = async {
            while self.connections() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.expect("a request");
    }

    /// Waits until the other side has closed a connection.
    async fn connection_is_closed(&mut self) {
        let closed = tokio::time::timeout(PATIENCE, self.closed.recv()).await.expect("a connection that leaks");
        closed.expect("the server is there");
    }
}

async fn head_of(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

async fn until_closed(stream: &mut TcpStream) {
    let mut bytes = [0; 1024];
    while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A guest with this payload and these granted origins.
fn requesting(payload: Value, grants: &[&str]) -> Run {
    let mut run = Run::guest("http", &payload.to_string());
    run.grants.http = grants.iter().map(|grant| HttpGrant::parse(grant).expect("a grant")).collect();
    run
}

async fn completed(run: &Run) -> Value {
    let report = run.alone().await;
    let GuestOutcome::Completed(result) = &report.outcome else { panic!("{report:?}") };
    serde_json::from_str(result).expect("JSON")
}

/// The error that a guest got, and the log of its attempt.
async fn refused(payload: Value, grants: &[&str]) -> (String, String) {
    let run = requesting(payload, grants);
    let answer = completed(&run).await;
    let error = answer["error"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let lines = run.handle.take_lines();
    assert!(lines.iter().all(|line| (line.source, line.level) == (Source::Log, Some("warn"))), "{lines:?}");
    (error, lines.iter().map(|line| line.message.as_str()).collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn a_granted_request_gets_its_response() {
    let (heads, mut seen) = unbounded_channel();
    let server = Server::doing(move |mut stream, _| {
        let heads = heads.clone();
        async move {
            _ = heads.send(head_of(&mut stream).await);
            _ = stream.write_all(ok("hello").as_bytes()).await;
        }
    })
    .await;
    let url = format!("{}/a/path?and=query", server.http());
    let run = requesting(json!({"url": url, "method": "PUT", "headers": {"x-own": "1"}}), &[&server.http()]);
    let answer = completed(&run).await;
    assert_eq!((&answer["response"]["status"], &answer["response"]["body"]), (&json!(200), &json!("hello")));
    let head = seen.recv().await.expect("a request");
    assert!(head.starts_with("PUT /a/path?and=query HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nhost: {}\r\n", server.address)) && head.contains("\r\nx-own: 1\r\n"), "{head}");
    assert_eq!(run.handle.take_lines(), []);
}

#[tokio::test]
async fn a_request_body_is_sent() {
    let server = Server::doing(|mut stream, _| async move {
        let head = head_of(&mut stream).await;
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            body.push(stream.read_u8().await.expect("more"));
        }
        let zeros = body.iter().filter(|byte| **byte == 0).count();
        _ = stream.write_all(ok(&zeros.to_string()).as_bytes()).await;
    })
    .await;
    let payload = json!({"url": server.http(), "method": "POST", "body_bytes": 300_000});
    assert_eq!(completed(&requesting(payload, &[&server.http()])).await["response"]["body"], "300000");
}

#[tokio::test]
async fn a_denied_request_never_connects() {
    let (server, other) = (Server::answering(ok("")).await, Server::answering(ok("")).await);
    let port = server.address.port();
    for (grants, url) in [
        (vec![], server.http()),
        (vec![other.http()], server.http()),
        (vec![server.url("https")], server.http()),
        (vec![server.http()], format!("http://127.0.0.2:{port}")),
        (vec![server.http()], format!("http://[::ffff:127.0.0.1]:{port}")),
        (vec![server.http()], format!("http://localhost:{port}")),
    ] {
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        let (error, log) = refused(json!({"url": url}), &grants).await;
        assert!(error.contains("HttpRequestDenied"), "{url}: {error}");
        let shown = if url.contains("ffff") { format!("http://[::ffff:127.0.0.1]:{port}") } else { url };
        let list: Vec<_> = grants.iter().chain([&shown.as_str()]).map(|origin| format!("{origin:?}")).collect();
        assert!(log.contains(&format!("`http = [{}]` under `[jobs.tested]`", list.join(", "))), "{log}");
    }
    assert_eq!(server.connections() + other.connections(), 0);
}

#[tokio::test]
async fn a_url_that_looks_like_a_granted_one_is_refused() {
    let server = Server::answering(ok("")).await;
    let port = server.address.port();
    let grant = server.http();
    for (url, said) in [
        (format!("http://127.0.0.1:{port}@localhost:{port}"), "contains a user"),
        (format!("http://user:word@127.0.0.1:{port}"), "contains a user"),
        (format!("http://2130706433:{port}"), "four decimal numbers"),
        (format!("http://0x7f.1:{port}"), "four decimal numbers"),
        (format!("http://127.1:{port}"), "four decimal numbers"),
        (format!("http://0177.0.0.1:{port}"), "four decimal numbers"),
        ("http://127.0.0.1:99999".to_owned(), "the port must be a number"),
    ] {
        let (error, log) = refused(json!({"url": url}), &[&grant]).await;
        assert!(error.contains("HttpRequestUriInvalid"), "{url}: {error}");
        assert!(log.contains(said) && !log.contains("word"), "{url}: {log}");
    }
    let (error, _) = refused(json!({"url": "http:///path"}), &[&grant]).await;
    assert!(error.contains("Invalid") || error.contains("ProtocolError"), "{error}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn localhost_can_be_granted() {
    let server = Server::answering(ok("here")).await;
    let url = format!("http://LocalHost.:{}", server.address.port());
    let grant = format!("http://localhost:{}", server.address.port());
    assert_eq!(completed(&requesting(json!({"url": url}), &[&grant])).await["response"]["body"], "here");
}

#[tokio::test]
async fn an_ipv6_address_can_be_granted() {
    let conduct: Conduct = Arc::new(|mut stream, _| {
        tokio::spawn(async move {
            head_of(&mut stream).await;
            _ = stream.write_all(ok("six").as_bytes()).await;
        })
    });
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_err() {
        return; // A machine without IPv6.
    }
    let server = Server::at(Ipv6Addr::LOCALHOST, conduct).await;
    assert_eq!(
        completed(&requesting(json!({"url": server.http()}), &[&server.http()])).await["response"]["body"],
        "six"
    );
}

/// Names that resolve only to addresses of this machine.
fn loopback_names() -> Vec<String> {
    let own = std::fs::read_to_string("/etc/hostname").unwrap_or_default().trim().to_owned();
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let listed =
        hosts.lines().filter_map(|line| line.split('#').next()).flat_map(|line| line.split_whitespace().skip(1));
    let names = listed.map(str::to_owned).chain([own]).filter(|name| name != "localhost" && !name.is_empty());
    let is_own = |name: &String| {
        let found = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0));
        found.is_ok_and(|mut found| found.all(|address| address.ip().is_loopback()))
    };
    names.filter(is_own).collect()
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_is_refused_until_the_address_is_granted() {
    let server = Server::answering(ok("reached")).await;
    let port = server.address.port();
    for name in loopback_names() {
        let grant = format!("http://{name}:{port}");
        let Ok(parsed) = HttpGrant::parse(&grant) else { continue };
        let (error, log) = refused(json!({"url": grant}), &[&grant]).await;
        assert!(error.contains("DestinationIpProhibited"), "{error}");
        assert!(log.contains("a loopback address, which needs a grant of its own"), "{log}");
        assert!(log.contains(&format!("`http = [\"{parsed}\", \"http://")), "{log}");
        assert_eq!(server.connections(), 0);
    }
}

#[tokio::test]
async fn a_redirect_is_followed_by_the_guest_and_checked_again() {
    let secret = Server::answering(ok("the secret")).await;
    let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", secret.http());
    let server = Server::answering(redirect).await;
    let answer = completed(&requesting(json!({"url": server.http()}), &[&server.http()])).await;
    assert_eq!(answer["response"]["status"], 302, "the host follows none");
    let run = requesting(json!({"url": server.http(), "follow": 1}), &[&server.http()]);
    assert_eq!(completed(&run).await["error"], "ErrorCode::HttpRequestDenied");
    assert_eq!(secret.connections(), 0);
    let run = requesting(json!({"url": server.http(), "follow": 1}), &[&server.http(), &secret.http()]);
    assert_eq!(completed(&run).await["response"]["body"], "the secret");
}

#[tokio::test]
async fn a_response_over_its_limit_is_an_error() {
    let long = "x".repeat(100_000);
    let announced = Server::answering(ok(&long)).await;
    let chunked =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    let unannounced = Server::answering(chunked).await;
    let until_the_end = Server::answering(format!("HTTP/1.0 200 OK\r\n\r\n{long}")).await;
    for (server, is_announced) in [(&announced, true), (&unannounced, false), (&until_the_end, false)] {
        let mut run = requesting(json!({"url": server.http()}), &[&server.http()]);
        run.limits.max_response = 100_000;
        let answer = completed(&run).await;
        assert_eq!((&answer["response"]["bytes"], &answer["response"]["error"]), (&json!(100_000), &Value::Null));
        assert_eq!(run.handle.take_lines(), []);

        run.limits.max_response = 99_999;
        let answer = completed(&run).await;
        let error = if is_announced { &answer["error"] } else { &answer["response"]["error"] };
        assert!(error.as_str().is_some_and(|error| error.contains("HttpResponseBodySize(Some(99999))")), "{answer}");
        let lines = run.handle.take_lines();
        assert!(lines.len() == 1 && lines[0].message.contains("`max_response`"), "{lines:?}");
    }
}

#[tokio::test]
async fn an_endless_body_does_not_fill_the_memory_of_the_host() {
    let mut server = Server::doing(|mut stream, tell| async move {
        head_of(&mut stream).await;
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 16 << 10]).await.is_ok() {}
        _ = tell.send(());
    })
    .await;
    let run = requesting(json!({"url": server.http()}), &[&server.http()]);
    let answer = completed(&run).await;
    assert_eq!(answer["response"]["error"], "ErrorCode::HttpResponseBodySize(Some(16777216))");
    assert!(answer["response"]["bytes"].as_u64().is_some_and(|bytes| bytes <= 16 << 20), "{answer}");
    server.connection_is_closed().await;
}

#[tokio::test]
async fn a_flood_of_headers_is_an_error() {
    let many = (0..1000).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    for headers in [many, long] {
        let server = Server::answering(format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).await;
        let (error, _) = refused(json!({"url": server.http()}), &[&server.http()]).await;
        assert!(error.contains("HttpResponseHeaderSectionSize"), "{error}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_is_an_error() {
    for (answer, wanted) in [
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "HttpProtocolError"),
        ("", "HttpResponseIncomplete"),
        ("HTTP/1.1 200 OK\r\ncontent-len", "HttpResponseIncomplete"),
    ] {
        let server = Server::answering(answer).await;
        let (error, _) = refused(json!({"url": server.http()}), &[&server.http()]).await;
        assert!(error.contains(wanted), "{answer:?}: {error}");
    }
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
    let answer = completed(&requesting(json!({"url": server.http()}), &[&server.http()])).await;
    assert_eq!(answer["response"]["bytes"], 4, "{answer}");
    assert_eq!(answer["response"]["error"], "ErrorCode::HttpResponseIncomplete", "{answer}");
}

#[tokio::test]
async fn a_refused_connection_is_an_error_that_says_so() {
    let server = Server::answering("").await;
    let address = server.http();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let closed = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    assert_ne!(address, closed);
    let (error, log) = refused(json!({"url": closed}), &[&closed]).await;
    assert!(error.contains("ConnectionRefused") && log.is_empty(), "{error} {log}");
    let (error, _) = refused(json!({"url": "http://nowhere.invalid"}), &["http://*.invalid"]).await;
    assert!(error.contains("ErrorCode::Dns"), "{error}");
}

#[tokio::test]
async fn a_guest_may_set_shorter_timeouts() {
    let silent = Server::stalling(b"").await;
    let (error, _) = refused(json!({"url": silent.http(), "first_byte_ms": 50}), &[&silent.http()]).await;
    assert!(error.contains("ConnectionReadTimeout"), "{error}");
    let half = Server::stalling(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
    let answer = completed(&requesting(json!({"url": half.http(), "between_bytes_ms": 50}), &[&half.http()])).await;
    assert_eq!(answer["response"]["bytes"], 4, "{answer}");
    assert_eq!(answer["response"]["error"], "ErrorCode::ConnectionReadTimeout", "{answer}");
}

#[tokio::test]
async fn a_request_without_a_response_ends_with_the_attempt() {
    for begin in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let mut server = Server::stalling(begin).await;
        let run = requesting(json!({"url": server.http()}), &[&server.http()]).timeout(Duration::from_millis(300));
        let (report, lines) = run.beside_a_neighbour().await;
        assert!(matches!(report.outcome, GuestOutcome::TimedOut(_)), "{report:?}");
        let wanted = format!("requests still open at the time limit: {}", server.http());
        assert_eq!(lines.iter().map(|line| &line.message).collect::<Vec<_>>(), [&wanted]);
        server.connection_is_closed().await;
    }
}

#[tokio::test]
async fn a_slow_body_ends_with_the_attempt() {
    let mut server = Server::doing(|mut stream, tell| async move {
        head_of(&mut stream).await;
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        _ = tell.send(());
    })
    .await;
    let run = requesting(json!({"url": server.http()}), &[&server.http()]).timeout(Duration::from_millis(300));
    let (report, _) = run.beside_a_neighbour().await;
    assert!(matches!(report.outcome, GuestOutcome::TimedOut(_)), "{report:?}");
    server.connection_is_closed().await;
}

#[tokio::test]
async fn stopping_a_guest_closes_its_connections() {
    let mut server = Server::stalling(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
    let run = requesting(json!({"url": server.http()}), &[&server.http()]);
    let handle = Arc::clone(&run.handle);
    let running = tokio::spawn(async move { run.alone().await });
    server.is_reached().await;
    handle.stop();
    assert_eq!(running.await.expect("the host does not panic").outcome, GuestOutcome::Stopped);
    server.connection_is_closed().await;
}

#[tokio::test]
async fn dropping_a_run_closes_its_connections() {
    let mut server = Server::stalling(b"").await;
    let run = requesting(json!({"url": server.http()}), &[&server.http()]);
    let running = tokio::spawn(async move { run.alone().await });
    server.is_reached().await;
    running.abort();
    server.connection_is_closed().await;
}

#[tokio::test]
async fn the_connections_of_one_attempt_are_limited() {
    let mut server = Server::stalling(b"HTTP/1.1 200 OK\r\n\r\nhalf").await;
    let payload = json!({"url": server.http(), "together": 70, "between_bytes_ms": 200});
    let run = requesting(payload, &[&server.http()]);
    let answers = completed(&run).await;
    let answers = answers.as_array().expect("a list");
    let refused = answers.iter().filter(|answer| answer["error"] == "ErrorCode::ConnectionLimitReached").count();
    assert_eq!((refused, server.connections()), (6, 64));
    let lines = run.handle.take_lines();
    assert!(lines.len() == 1 && lines[0].message.contains("64 connections open at once"), "{lines:?}");
    server.connection_is_closed().await;
}

#[tokio::test]
async fn the_requests_of_one_attempt_are_limited() {
    let server = Server::answering(ok("")).await;
    let run = requesting(json!({"url": server.http(), "times": 1002, "connect_ms": 100_000}), &[&server.http()]);
    let answers = completed(&run).await;
    let answers = answers.as_array().expect("a list");
    assert_eq!(answers.iter().filter(|answer| answer["response"]["status"] == 200).count(), 1000);
    assert_eq!(answers[1001]["error"], "ErrorCode::HttpRequestDenied");
    let lines = run.handle.take_lines();
    assert!(lines.len() == 1 && lines[0].message.contains("at most 1000"), "{lines:?}");
}

#[tokio::test]
async fn repeated_denials_do_not_flood_the_log() {
    let run = requesting(json!({"url": "http://127.0.0.1:1", "times": 1000}), &[]);
    let answers = completed(&run).await;
    assert_eq!(answers.as_array().map(Vec::len), Some(1000));
    assert_eq!(run.handle.take_lines().len(), 1);
}

#[tokio::test]
async fn connection_headers_are_set_by_the_host() {
    let server = Server::answering(ok("")).await;
    for name in ["Host", "Connection", "Transfer-Encoding", "Upgrade", "Proxy-Authorization"] {
        let payload = json!({"url": server.http(), "headers": {name: "evil"}});
        let (error, _) = refused(payload, &[&server.http()]).await;
        assert!(error.contains("is no URL"), "{name} is taken: {error}");
    }
    let (error, _) = refused(json!({"url": server.http(), "method": "CONNECT"}), &[&server.http()]).await;
    assert!(error.contains("HttpRequestMethodInvalid"), "{error}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_handshake_that_hangs_times_out() {
    let mut server = Server::doing(|mut stream, tell| async move {
        until_closed(&mut stream).await;
        _ = tell.send(());
    })
    .await;
    let origin = server.url("https");
    let (error, _) = refused(json!({"url": origin, "connect_ms": 100}), &[&origin]).await;
    assert!(error.contains("ConnectionTimeout"), "{error}");
    server.connection_is_closed().await;
    let run = requesting(json!({"url": origin}), &[&origin]).timeout(Duration::from_millis(300));
    let (report, _) = run.beside_a_neighbour().await;
    assert!(matches!(report.outcome, GuestOutcome::TimedOut(_)), "{report:?}");
    server.connection_is_closed().await;
}

#[tokio::test]
async fn a_server_with_an_untrusted_certificate_is_refused_with_an_explanation() {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a key that fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::doing(move |stream, _| {
        let acceptor = acceptor.clone();
        async move { _ = acceptor.accept(stream).await }
    })
    .await;
    let origin = server.url("https");
    let (error, log) = refused(json!({"url": origin}), &[&origin]).await;
    assert!(error.contains("TlsCertificateError"), "{error}");
    assert!(
        log.contains(&format!("the certificate of {origin} isn't trusted: ")) && log.contains("SSL_CERT_FILE"),
        "{log}"
    );

    let plain = Server::doing(|mut stream, _| async move {
        _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    let origin = plain.url("https");
    let (error, log) = refused(json!({"url": origin}), &[&origin]).await;
    assert!(error.contains("TlsProtocolError") && log.contains("handshake"), "{error} {log}");
}
