//! Proves the grants of the network: sends one GET, and returns the status and the body or the error.

use guests::{Job, JobError};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, IncomingResponse, OutgoingRequest, Scheme};

guests::handler!(get);

#[derive(serde::Deserialize)]
struct Payload {
    url: String,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    /// Status and body.
    Response { status: u16, body: String },
    /// The name of the error.
    Error(String),
}

fn get(job: Job) -> Result<String, JobError> {
    let Payload { url } = guests::payload(&job)?;
    let request = request(&url).ok_or_else(|| JobError::Fatal(format!("`{url}` is no URL")))?;
    let answer = match send(request) {
        Ok(response) => Answer::Response { status: response.status(), body: body(&response) },
        Err(error) => Answer::Error(format!("{error:?}")),
    };
    guests::result(&answer)
}

fn request(url: &str) -> Option<OutgoingRequest> {
    let (scheme, rest) = url.split_once("://")?;
    let path_start = rest.find('/').unwrap_or(rest.len());
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.into()),
    };
    let request = OutgoingRequest::new(Fields::new());
    request.set_scheme(Some(&scheme)).ok()?;
    request.set_authority(Some(&rest[..path_start])).ok()?;
    request.set_path_with_query(Some(&rest[path_start..]).filter(|path| !path.is_empty())).ok()?;
    Some(request)
}

fn send(request: OutgoingRequest) -> Result<IncomingResponse, ErrorCode> {
    let response = outgoing_handler::handle(request, None)?;
    response.subscribe().block();
    response.get().expect("the response is there").expect("nobody took it before")
}

fn body(response: &IncomingResponse) -> String {
    let body = response.consume().expect("nobody took the body before");
    let stream = body.stream().expect("nobody took the stream before");
    let mut bytes = Vec::new();
    while let Ok(chunk) = stream.blocking_read(64 << 10) {
        bytes.extend(chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
