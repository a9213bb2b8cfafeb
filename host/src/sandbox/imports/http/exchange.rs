//! One request and its response, over a connection of its own.

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

use super::body::{RequestBody, ResponseBody};
use super::connect::{Stream, connect};
use super::errors::{self, MAX_HEAD};
use super::policy::{ConnectionSlot, HttpPolicy};
use crate::sandbox::origin::Origin;

/// The default connect timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Header lines of a response.
const MAX_HEADERS: usize = 200;

/// How much longer than its attempt a request may take. The time limit of the attempt ends it first, so that the log can
/// name the open request.
const EXTRA: Duration = Duration::from_secs(1);

/// Keeps a connection going; dropping it closes the connection.
pub(super) type Transmission = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// The timeouts of an exchange.
struct Timeouts {
    connected: Instant,
    first_byte: Duration,
    between_bytes: Duration,
}

impl Timeouts {
    fn new(options: RequestOptions, deadline: std::time::Instant) -> Self {
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now.into_std()) + EXTRA;
        let within = |requested: Option<Duration>| requested.unwrap_or(left).min(left);
        Self {
            connected: now + within(options.connect_timeout.or(Some(CONNECT_TIMEOUT))),
            first_byte: within(options.first_byte_timeout),
            between_bytes: within(options.between_bytes_timeout),
        }
    }
}

/// Sends `request` to `origin`, which is granted, and returns the response with its connection.
pub(super) async fn exchange(
    request: Request<WasiBody>,
    origin: Origin,
    options: RequestOptions,
    policy: Arc<HttpPolicy>,
    slot: ConnectionSlot,
) -> Result<(Response<WasiBody>, Transmission), Error> {
    let timeouts = Timeouts::new(options, policy.deadline);
    let request = in_origin_form(request, &origin)?;
    let stream = connect(&origin, &policy, timeouts.connected).await?;
    let mut builder = Builder::new();
    builder.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(errors::from_hyper)?;
    let mut connection = DrivenConnection(Some(connection));
    let response = {
        let mut sending = pin!(sender.send_request(request));
        let head = async {
            loop {
                tokio::select! {
                    biased;
                    response = &mut sending => return response.map_err(errors::from_hyper),
                    // If the connection ends, the response fails.
                    _ = connection.drive(), if connection.is_open() => {}
                }
            }
        };
        let end = Instant::now() + timeouts.first_byte;
        timeout_at(end, head).await.map_err(|_| Error::ConnectionReadTimeout)??
    };
    let (head, incoming) = response.into_parts();
    let max = policy.max_response as u64;
    if incoming.size_hint().lower() > max {
        policy.log(too_large(&origin, max));
        return Err(Error::HttpResponseBodySize(Some(max)));
    }
    let on_too_large = move || policy.log(too_large(&origin, max));
    let body = ResponseBody::new(incoming, max, timeouts.between_bytes, on_too_large).boxed_unsync();
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

/// Puts the request into origin form: only the path in the request line, and the checked origin in `Host`.
fn in_origin_form(request: Request<WasiBody>, origin: &Origin) -> Result<Request<RequestBody>, Error> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = Uri::builder().path_and_query(path).build().map_err(|_| Error::HttpRequestUriInvalid)?;
    let host = HeaderValue::try_from(origin.authority()).map_err(|_| Error::HttpRequestUriInvalid)?;
    head.headers.insert(HOST, host);
    Ok(Request::from_parts(head, RequestBody::new(body)))
}

/// A connection that is polled until it ends, and not after that.
struct DrivenConnection(Option<Connection<TokioIo<Box<dyn Stream>>, RequestBody>>);

impl DrivenConnection {
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
