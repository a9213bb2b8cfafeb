//! One request and its response, over a connection of its own.

use std::error::Error as _;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::client::conn::http1::{Builder, Connection};
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::Transmission;
use super::body::{Bounded, Counted};
use super::connect::{Stream, connect};
use super::policy::{HttpPolicy, Slot};
use crate::sandbox::origin::Origin;

/// How long a connection may take to stand if the guest does not say.
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes of the head of a response.
const MAX_HEAD: usize = 64 << 10;

/// Header lines of a response.
const MAX_HEADERS: usize = 200;

/// How much longer than its attempt a request may take: it is the end of the attempt that ends it then, and the log can say so.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// How long each step may take.
struct Pace {
    connected: Instant,
    first_byte: Duration,
    between_bytes: Duration,
}

impl Pace {
    fn new(options: RequestOptions, deadline: std::time::Instant) -> Self {
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now.into_std()) + AFTERWARDS;
        let within = |asked: Option<Duration>| asked.unwrap_or(left).min(left);
        Self {
            connected: now + within(options.connect_timeout.or(Some(CONNECT))),
            first_byte: within(options.first_byte_timeout),
            between_bytes: within(options.between_bytes_timeout),
        }
    }
}

/// Sends `request` to `origin`, which is granted. What comes back beside the response keeps the connection going, and ends it when dropped.
pub(super) async fn exchange(
    request: Request<WasiBody>,
    origin: Origin,
    options: RequestOptions,
    policy: Arc<HttpPolicy>,
    slot: Slot,
) -> Result<(Response<WasiBody>, Transmission), Error> {
    let pace = Pace::new(options, policy.deadline);
    let request = in_origin_form(request, &origin)?;
    let stream = connect(&origin, &policy, pace.connected).await?;
    let mut builder = Builder::new();
    builder.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut connection = Driven(Some(connection));
    let response = {
        let mut sending = pin!(sender.send_request(request));
        let head = async {
            loop {
                tokio::select! {
                    biased;
                    response = &mut sending => return response.map_err(broken),
                    // Its end is told by the response, or by the lack of one.
                    _ = connection.drive(), if connection.is_open() => {}
                }
            }
        };
        let end = Instant::now() + pace.first_byte;
        timeout_at(end, head).await.map_err(|_| Error::ConnectionReadTimeout)??
    };
    let (head, incoming) = response.into_parts();
    let max = policy.max_response as u64;
    if incoming.size_hint().lower() > max {
        policy.say(too_large(&origin, max));
        return Err(Error::HttpResponseBodySize(Some(max)));
    }
    let said = move || policy.say(too_large(&origin, max));
    let body = Bounded::new(incoming, max, pace.between_bytes, said).boxed_unsync();
    let transmission = async move {
        let _slot = slot;
        connection.drive().await;
        Ok(())
    };
    Ok((Response::from_parts(head, body), Box::new(transmission)))
}

fn too_large(origin: &Origin, max: u64) -> String {
    let limit = bytesize::ByteSize::b(max);
    format!("a response of {origin} is larger than `max_response` allows ({limit})")
}

/// As a server wants it: the path alone, and in `Host` what has been checked.
fn in_origin_form(request: Request<WasiBody>, origin: &Origin) -> Result<Request<Counted>, Error> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = Uri::builder().path_and_query(path).build().map_err(|_| Error::HttpRequestUriInvalid)?;
    let host = HeaderValue::try_from(origin.authority()).map_err(|_| Error::HttpRequestUriInvalid)?;
    head.headers.insert(HOST, host);
    Ok(Request::from_parts(head, Counted::new(body)))
}

/// A connection that is polled until it ends, and not after.
struct Driven(Option<Connection<TokioIo<Box<dyn Stream>>, Counted>>);

impl Driven {
    const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    async fn drive(&mut self) {
        if let Some(connection) = &mut self.0 {
            // A failure reaches the guest through the response or its body.
            _ = connection.await;
            self.0 = None;
        }
    }
}

/// What the guest is told when a connection fails in the middle.
pub(super) fn broken(error: hyper::Error) -> Error {
    if let Some(own) = error.source().and_then(|source| source.downcast_ref::<Error>()) {
        return match own {
            Error::HttpRequestBodySize(size) => Error::HttpRequestBodySize(*size),
            _ => Error::HttpProtocolError,
        };
    }
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let ended = source.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    if error.is_parse_too_large() {
        Error::HttpResponseHeaderSectionSize(Some(MAX_HEAD as u32))
    } else if ended || error.is_incomplete_message() {
        Error::HttpResponseIncomplete
    } else if error.is_parse() || error.is_user() {
        Error::HttpProtocolError
    } else {
        Error::ConnectionTerminated
    }
}
