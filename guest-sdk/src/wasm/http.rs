//! Sends a request over `wasi:http`, with one deadline for the whole exchange.

use std::time::{Duration, Instant};

use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, HeaderError, IncomingBody, IncomingResponse, Method, OutgoingBody,
    OutgoingRequest, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use crate::http::{ErrorKind, Outgoing, Response};

/// How many bytes to read at once.
const CHUNK: u64 = 64 << 10;

/// Sends a request and reads the response.
pub(super) fn send(request: Outgoing, job_type: &str) -> Result<Response, ErrorKind> {
    Exchange { deadline: Deadline::after(request.timeout), request: &request, job_type }.run()
}

struct Exchange<'a> {
    request: &'a Outgoing,
    job_type: &'a str,
    deadline: Deadline,
}

impl Exchange<'_> {
    fn run(&self) -> Result<Response, ErrorKind> {
        let outgoing = self.outgoing()?;
        let body = outgoing.body().map_err(|()| broken("the body was already taken"))?;
        let answer = outgoing_handler::handle(outgoing, Some(self.options())).map_err(|code| self.kind(code))?;
        self.write(body, &answer)?;
        let incoming = self.wait(&answer)?;
        let status = incoming.status();
        let mut response = Response::new(status);
        for (name, value) in incoming.headers().entries() {
            response = response.with_header(name, String::from_utf8_lossy(&value));
        }
        let body = incoming.consume().map_err(|()| broken("the body was already taken"))?;
        let bytes = self.read(&body, status)?;
        Ok(response.with_body(bytes))
    }

    fn outgoing(&self) -> Result<OutgoingRequest, ErrorKind> {
        let request = self.request;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let mut entries: Vec<_> = request.headers.iter().map(|(name, value)| (name.clone(), bytes(value))).collect();
        // A body of unknown length would be sent in chunks, which some servers don't accept.
        if let Some(body) = &request.body {
            entries.push(("content-length".into(), bytes(&body.len().to_string())));
        }
        let headers = Fields::from_list(&entries).map_err(|error| {
            ErrorKind::Invalid(match error {
                HeaderError::Forbidden => "a handler can't set one of its headers".into(),
                _ => "the host rejected its headers".into(),
            })
        })?;

        let url = &request.url;
        let outgoing = OutgoingRequest::new(headers);
        outgoing
            .set_method(&method(&request.method))
            .and_then(|()| outgoing.set_scheme(Some(if url.is_https() { &Scheme::Https } else { &Scheme::Http })))
            .and_then(|()| outgoing.set_authority(Some(url.authority())))
            .and_then(|()| outgoing.set_path_with_query(Some(url.path_and_query())))
            .map_err(|()| ErrorKind::Invalid("the host rejected its method or URL".into()))?;
        Ok(outgoing)
    }

    /// The host's timeouts. A host may ignore them, so the deadline is enforced here too.
    fn options(&self) -> RequestOptions {
        let options = RequestOptions::new();
        let time = Some(nanoseconds(self.request.timeout));
        let _ = options.set_connect_timeout(time);
        let _ = options.set_first_byte_timeout(time);
        let _ = options.set_between_bytes_timeout(time);
        options
    }

    /// Writes the body. Stops if the response arrives first, because the server doesn't want the rest.
    fn write(&self, body: OutgoingBody, answer: &FutureIncomingResponse) -> Result<(), ErrorKind> {
        if let Some(bytes) = &self.request.body {
            let stream = body.write().map_err(|()| broken("the body was already taken"))?;
            self.write_all(bytes, &stream, answer)?;
        }
        // Fails if the body wasn't accepted; the response then is an error with the reason.
        let _ = OutgoingBody::finish(body, None);
        Ok(())
    }

    fn write_all(
        &self,
        mut bytes: &[u8],
        stream: &OutputStream,
        answer: &FutureIncomingResponse,
    ) -> Result<(), ErrorKind> {
        while !bytes.is_empty() {
            match stream.check_write() {
                Ok(0) => {
                    let (room, answered) = (stream.subscribe(), answer.subscribe());
                    self.deadline.wait_for(&[&room, &answered]).map_err(|DeadlinePassed| self.timeout())?;
                    if answered.ready() {
                        return Ok(());
                    }
                }
                Ok(room) => {
                    let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
                    if stream.write(now).is_err() {
                        return Ok(());
                    }
                    bytes = later;
                }
                Err(_) => return Ok(()),
            }
        }
        // Doesn't wait: receiving the response, which comes next, implies that the body was sent.
        let _ = stream.flush();
        Ok(())
    }

    fn wait(&self, answer: &FutureIncomingResponse) -> Result<IncomingResponse, ErrorKind> {
        let ready = answer.subscribe();
        self.deadline.wait_for(&[&ready]).map_err(|DeadlinePassed| self.timeout())?;
        match answer.get() {
            Some(Ok(Ok(response))) => Ok(response),
            Some(Ok(Err(code))) => Err(self.kind(code)),
            Some(Err(())) | None => Err(broken("the host lost it")),
        }
    }

    /// Reads the body. For an error response, or if the body may be cut, an incomplete body is good enough.
    fn read(&self, body: &IncomingBody, status: u16) -> Result<Vec<u8>, ErrorKind> {
        let stream = body.stream().map_err(|()| broken("the body was already taken"))?;
        let mut bytes = Vec::new();
        match self.read_all(&stream, &mut bytes) {
            Err(_) if self.request.cut || status >= 400 => Ok(bytes),
            Err(kind) => Err(kind),
            Ok(()) => Ok(bytes),
        }
    }

    fn read_all(&self, stream: &InputStream, bytes: &mut Vec<u8>) -> Result<(), ErrorKind> {
        let limit = self.request.max_body;
        loop {
            match stream.read(CHUNK) {
                Ok(chunk) if chunk.is_empty() => {
                    self.deadline.wait_for(&[&stream.subscribe()]).map_err(|DeadlinePassed| self.timeout())?;
                }
                Ok(chunk) => {
                    let room = limit - bytes.len();
                    bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
                    if chunk.len() > room {
                        return Err(ErrorKind::TooLong(limit));
                    }
                }
                Err(StreamError::Closed) => return Ok(()),
                Err(StreamError::LastOperationFailed(error)) => {
                    return Err(match http_error_code(&error) {
                        Some(code) => self.kind(code),
                        None => ErrorKind::Broken(error.to_debug_string()),
                    });
                }
            }
        }
    }

    fn timeout(&self) -> ErrorKind {
        ErrorKind::Timeout(self.request.timeout)
    }

    fn kind(&self, code: ErrorCode) -> ErrorKind {
        let invalid = |why: &str| ErrorKind::Invalid(why.into());
        match code {
            ErrorCode::HttpRequestDenied => {
                ErrorKind::Denied { job_type: self.job_type.into(), origin: self.request.url.origin().into() }
            }
            ErrorCode::DestinationIpProhibited => ErrorKind::Private,

            ErrorCode::DnsTimeout => ErrorKind::Dns("the DNS query timed out".into()),
            ErrorCode::DnsError(error) => ErrorKind::Dns(error.rcode.unwrap_or_else(|| "the DNS query failed".into())),
            ErrorCode::DestinationNotFound => ErrorKind::Dns("no such host".into()),

            ErrorCode::DestinationUnavailable => ErrorKind::Connect("the destination is unavailable".into()),
            ErrorCode::DestinationIpUnroutable => ErrorKind::Connect("no route to its address".into()),
            ErrorCode::ConnectionRefused => ErrorKind::Connect("connection refused".into()),
            ErrorCode::ConnectionLimitReached => ErrorKind::Connect("too many connections".into()),

            ErrorCode::TlsProtocolError => ErrorKind::Tls("TLS protocol error".into()),
            ErrorCode::TlsCertificateError => ErrorKind::Tls("the server's certificate isn't trusted".into()),
            ErrorCode::TlsAlertReceived(alert) => {
                ErrorKind::Tls(alert.alert_message.unwrap_or_else(|| "the server sent an alert".into()))
            }

            ErrorCode::ConnectionTimeout
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout => self.timeout(),

            ErrorCode::HttpRequestLengthRequired => invalid("the host requires the length of its body"),
            ErrorCode::HttpRequestBodySize(_) => invalid("its body is too long, or doesn't match its length"),
            ErrorCode::HttpRequestMethodInvalid => invalid("the host rejected its method"),
            ErrorCode::HttpRequestUriInvalid => invalid("the host rejected its URL"),
            ErrorCode::HttpRequestUriTooLong => invalid("its URL is too long"),
            ErrorCode::HttpRequestHeaderSectionSize(_) | ErrorCode::HttpRequestHeaderSize(_) => {
                invalid("its headers are too long")
            }
            ErrorCode::HttpRequestTrailerSectionSize(_) | ErrorCode::HttpRequestTrailerSize(_) => {
                invalid("its trailers are too long")
            }

            ErrorCode::HttpResponseBodySize(size) => {
                let limit = size.and_then(|size| usize::try_from(size).ok());
                ErrorKind::TooLong(limit.unwrap_or(self.request.max_body))
            }
            ErrorCode::ConnectionTerminated => broken("the connection was closed"),
            ErrorCode::HttpResponseIncomplete => broken("it is incomplete"),
            ErrorCode::HttpResponseHeaderSectionSize(_) | ErrorCode::HttpResponseHeaderSize(_) => {
                broken("its headers are too long")
            }
            ErrorCode::HttpResponseTrailerSectionSize(_) | ErrorCode::HttpResponseTrailerSize(_) => {
                broken("its trailers are too long")
            }
            ErrorCode::HttpResponseTransferCoding(_) | ErrorCode::HttpResponseContentCoding(_) => {
                broken("unknown content or transfer coding")
            }
            ErrorCode::HttpUpgradeFailed | ErrorCode::HttpProtocolError => broken("HTTP protocol error"),
            ErrorCode::LoopDetected => broken("a loop was detected"),
            ErrorCode::ConfigurationError => broken("the host isn't configured for requests"),
            ErrorCode::InternalError(why) => ErrorKind::Broken(why.unwrap_or_else(|| "the host failed".into())),
        }
    }
}

/// When the exchange must end.
struct Deadline(Instant);

struct DeadlinePassed;

impl Deadline {
    fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// Waits until one of the pollables is ready.
    fn wait_for(&self, awaited: &[&Pollable]) -> Result<(), DeadlinePassed> {
        let left = self.0.saturating_duration_since(Instant::now());
        let timeout = subscribe_duration(nanoseconds(left));
        let all: Vec<&Pollable> = awaited.iter().copied().chain([&timeout]).collect();
        let ready = poll(&all);
        let timed_out = ready.iter().all(|&index| index as usize == awaited.len());
        if timed_out { Err(DeadlinePassed) } else { Ok(()) }
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.into()),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn broken(why: &str) -> ErrorKind {
    ErrorKind::Broken(why.into())
}
