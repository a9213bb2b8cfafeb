//! Proves the grants of the network: sends requests, and returns status and body, or the error, of each.

use std::collections::BTreeMap;

use guests::{Job, JobError};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

guests::handler!(send);

/// Bytes of a body that are returned; the others are counted.
const SHOWN: usize = 1000;

#[derive(serde::Deserialize)]
struct Payload {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Zeros that are sent after the head.
    #[serde(default)]
    body_bytes: usize,
    connect_ms: Option<u64>,
    first_byte_ms: Option<u64>,
    between_bytes_ms: Option<u64>,
    /// How often, one after the other.
    times: Option<usize>,
    /// How many at once: all are sent before the first response is read.
    together: Option<usize>,
    /// Redirects that are followed.
    #[serde(default)]
    follow: usize,
}

fn get() -> String {
    "GET".into()
}

#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Response(Response),
    /// The name of the error.
    Error(String),
}

#[derive(serde::Serialize)]
struct Response {
    status: u16,
    location: Option<String>,
    body: String,
    bytes: usize,
    /// Why the body ended early.
    error: Option<String>,
}

fn send(job: Job) -> Result<String, JobError> {
    let payload: Payload = guests::payload(&job)?;
    if let Some(times) = payload.times {
        let answers: Vec<Answer> = (0..times).map(|_| read(start(&payload, &payload.url))).collect();
        return guests::result(&answers);
    }
    if let Some(together) = payload.together {
        let started: Vec<_> = (0..together).map(|_| start(&payload, &payload.url)).collect();
        let heads: Vec<_> = started.into_iter().map(|started| started.and_then(head)).collect();
        let answers: Vec<Answer> = heads.into_iter().map(body).collect();
        return guests::result(&answers);
    }
    let mut answer = read(start(&payload, &payload.url));
    for _ in 0..payload.follow {
        let Answer::Response(Response { location: Some(location), .. }) = &answer else { break };
        answer = read(start(&payload, location));
    }
    guests::result(&answer)
}

fn read(started: Result<FutureIncomingResponse, ErrorCode>) -> Answer {
    body(started.and_then(head))
}

fn start(payload: &Payload, url: &str) -> Result<FutureIncomingResponse, ErrorCode> {
    let request = request(payload, url).ok_or(ErrorCode::InternalError(Some(format!("`{url}` is no URL"))))?;
    let outgoing = (payload.body_bytes > 0).then(|| request.body().expect("nobody took it before"));
    let response = outgoing_handler::handle(request, Some(options(payload)))?;
    if let Some(outgoing) = outgoing {
        let stream = outgoing.write().expect("nobody took it before");
        let mut left = payload.body_bytes;
        while left > 0 {
            let chunk = left.min(4096);
            if stream.blocking_write_and_flush(&[0; 4096][..chunk]).is_err() {
                break;
            }
            left -= chunk;
        }
        drop(stream);
        if left == 0 {
            OutgoingBody::finish(outgoing, None)?;
        }
    }
    Ok(response)
}

fn options(payload: &Payload) -> RequestOptions {
    let options = RequestOptions::new();
    let nanos = |ms: Option<u64>| ms.map(|ms| ms * 1_000_000);
    _ = options.set_connect_timeout(nanos(payload.connect_ms));
    _ = options.set_first_byte_timeout(nanos(payload.first_byte_ms));
    _ = options.set_between_bytes_timeout(nanos(payload.between_bytes_ms));
    options
}

fn request(payload: &Payload, url: &str) -> Option<OutgoingRequest> {
    let (scheme, rest) = url.split_once("://")?;
    let path_start = rest.find('/').unwrap_or(rest.len());
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.into()),
    };
    let headers = Fields::new();
    for (name, value) in &payload.headers {
        headers.append(name, value.as_bytes()).ok()?;
    }
    let request = OutgoingRequest::new(headers);
    request.set_method(&Method::Other(payload.method.clone())).ok()?;
    request.set_scheme(Some(&scheme)).ok()?;
    request.set_authority(Some(&rest[..path_start]).filter(|authority| !authority.is_empty())).ok()?;
    // Without a path, a request is none.
    let path = Some(&rest[path_start..]).filter(|path| !path.is_empty()).unwrap_or("/");
    request.set_path_with_query(Some(path)).ok()?;
    Some(request)
}

fn head(response: FutureIncomingResponse) -> Result<IncomingResponse, ErrorCode> {
    response.subscribe().block();
    response.get().expect("the response is there").expect("nobody took it before")
}

fn body(response: Result<IncomingResponse, ErrorCode>) -> Answer {
    let response = match response {
        Ok(response) => response,
        Err(error) => return Answer::Error(format!("{error:?}")),
    };
    let location = response.headers().get("location").pop();
    let incoming = response.consume().expect("nobody took the body before");
    let (shown, bytes, error) = drain(&incoming);
    Answer::Response(Response {
        status: response.status(),
        location: location.map(|location| String::from_utf8_lossy(&location).into_owned()),
        body: String::from_utf8_lossy(&shown).into_owned(),
        bytes,
        error,
    })
}

/// The beginning of a body, how long it was, and why it ended if that was no end.
fn drain(body: &IncomingBody) -> (Vec<u8>, usize, Option<String>) {
    let stream = body.stream().expect("nobody took the stream before");
    let (mut shown, mut bytes) = (Vec::new(), 0);
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(chunk) => {
                bytes += chunk.len();
                shown.extend(&chunk[..chunk.len().min(SHOWN - shown.len())]);
            }
            Err(StreamError::Closed) => return (shown, bytes, None),
            Err(StreamError::LastOperationFailed(error)) => {
                let code = http_error_code(&error).map_or("unknown".into(), |code| format!("{code:?}"));
                return (shown, bytes, Some(code));
            }
        }
    }
}
