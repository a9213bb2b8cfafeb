//! Building and sending requests.

use std::time::Duration;

use super::error::{Error, ErrorKind};
use super::response::Response;
use super::url::Url;
use crate::context::Context;
use crate::json::ToJson;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 8 << 20;

/// A request may not use the last tenth of the attempt's remaining time (at most one second).
const RESERVED_PART: u32 = 10;
const MAX_RESERVE: Duration = Duration::from_secs(1);

/// Headers that the host sets.
const HOST_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Starts building a GET request.
pub fn get(url: impl AsRef<str>) -> Request {
    request("GET", url)
}

/// Starts building a POST request.
pub fn post(url: impl AsRef<str>) -> Request {
    request("POST", url)
}

/// Starts building a PUT request.
pub fn put(url: impl AsRef<str>) -> Request {
    request("PUT", url)
}

/// Starts building a PATCH request.
pub fn patch(url: impl AsRef<str>) -> Request {
    request("PATCH", url)
}

/// Starts building a DELETE request.
pub fn delete(url: impl AsRef<str>) -> Request {
    request("DELETE", url)
}

/// Starts building a request with any method. [`send`](Request::send) reports an invalid method or URL.
pub fn request(method: &str, url: impl AsRef<str>) -> Request {
    let url = url.as_ref();
    let mut request = Request {
        method: method.into(),
        url: None,
        headers: Vec::new(),
        body: None,
        timeout: TIMEOUT,
        max_body: MAX_BODY,
        cut: false,
        problem: None,
    };
    if !is_token(method) {
        request.problem(format!("{method:?} isn't a valid method"));
    }
    match url.parse() {
        Ok(url) => request.url = Some(url),
        Err(error) => request.problem(format!("invalid URL: {error}")),
    }
    request
}

/// Builder of a request, made by [`get`], [`post`] and similar functions.
#[derive(Clone, Debug)]
#[must_use = "call `send` to send the request"]
pub struct Request {
    method: String,
    url: Option<Url>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    timeout: Duration,
    max_body: usize,
    cut: bool,
    /// The first problem that makes this request invalid.
    problem: Option<String>,
}

/// A request for the host.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: String,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    /// The time limit for sending the request and reading the response.
    pub(crate) timeout: Duration,
    pub(crate) max_body: usize,
    /// Whether the body may be cut at `max_body`.
    pub(crate) cut: bool,
}

impl Request {
    /// Adds a header. The host sets `Host`, `Content-Length`, `Transfer-Encoding` and similar headers; a handler can't.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Request {
        let value = value.as_ref();
        if !is_token(name) {
            self.problem(format!("{name:?} isn't a valid header name"));
        } else if HOST_HEADERS.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            self.problem(format!("the header {name:?} is set by the host; a handler can't set it"));
        } else if !value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
            // The value may be a secret.
            self.problem(format!(
                "the value of the header {name:?} contains a control character, such as a line break"
            ));
        } else {
            self.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// Sets the body to a value serialized as JSON, and `Content-Type: application/json` unless the request has that header.
    pub fn json(mut self, value: &impl ToJson) -> Request {
        match value.to_json() {
            Ok(json) if json.is_empty() => self.body = Some("null".into()),
            Ok(json) => self.body = Some(json.into_bytes()),
            Err(error) => self.problem(format!("failed to serialize the body as JSON: {error}")),
        }
        self.default_header("Content-Type", "application/json");
        self
    }

    /// Sets the time limit for the complete response. Defaults to 30 seconds, and is never longer than the attempt's remaining time.
    pub fn timeout(mut self, timeout: Duration) -> Request {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of the response's body. Defaults to 8 MiB.
    pub fn max_body(mut self, bytes: usize) -> Request {
        self.max_body = bytes;
        self
    }

    /// Reads only this many bytes of the response's body, and ignores the rest. Use it if only the status matters.
    pub fn first_bytes(mut self, bytes: usize) -> Request {
        self.max_body = bytes;
        self.cut = true;
        self
    }

    /// Sends the request and waits for the complete response, of any status.
    ///
    /// # Errors
    /// If there is no complete response. The [module](super) describes how `?` converts the error.
    pub fn send(mut self, ctx: &Context) -> Result<Response, Error> {
        self.default_header("User-Agent", concat!("jobq-guest/", env!("CARGO_PKG_VERSION")));
        let name = match &self.url {
            Some(url) => format!("{} {}", self.method, url.origin()),
            None => self.method.clone(),
        };
        let (url, headers, timeout) = match (self.problem, self.url) {
            (None, Some(url)) => (url, self.headers, self.timeout.min(time_for_a_request(ctx.remaining()))),
            (problem, _) => return Err(Error::new(name, ErrorKind::Invalid(problem.unwrap_or_default()))),
        };
        let outgoing = Outgoing {
            method: self.method,
            url,
            headers,
            body: self.body,
            timeout,
            max_body: self.max_body,
            cut: self.cut,
        };
        match ctx.http(outgoing) {
            Ok(response) => Ok(response.of(name)),
            Err(kind) => Err(Error::new(name, kind)),
        }
    }

    fn default_header(&mut self, name: &str, value: &str) {
        if !self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            self.headers.push((name.into(), value.into()));
        }
    }

    fn problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Leaves the handler some time to handle a timeout.
fn time_for_a_request(remaining: Duration) -> Duration {
    remaining - (remaining / RESERVED_PART).min(MAX_RESERVE)
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::Fake;

    const URL: &str = "https://example.com/path?token=secret";

    fn problem(request: Request) -> String {
        let fake = Fake::new().http(Response::new(200));
        let error = request.send(&fake.context()).unwrap_err();
        assert!(fake.requests().is_empty(), "it was sent");
        assert!(matches!(error.kind(), ErrorKind::Invalid(_)), "{error:?}");
        error.to_string()
    }

    #[test]
    fn an_invalid_request_is_not_sent() {
        for (request, message) in [
            (get("example.com"), "GET: invalid URL: it must start with https:// or http://"),
            (request("GET /", URL), "GET / https://example.com: \"GET /\" isn't a valid method"),
            (get(URL).header("X Y", "1"), "GET https://example.com: \"X Y\" isn't a valid header name"),
            (get(URL).header("", "1"), "GET https://example.com: \"\" isn't a valid header name"),
            (
                get(URL).header("X", "secret\r\nY: 2"),
                "GET https://example.com: the value of the header \"X\" contains a control character, such as a line break",
            ),
            (
                post(URL).header("HOST", "other.example"),
                "POST https://example.com: the header \"HOST\" is set by the host; a handler can't set it",
            ),
            (
                post(URL).json(&BTreeMap::from([(vec![1], 2)])),
                "POST https://example.com: failed to serialize the body as JSON: key must be a string",
            ),
        ] {
            assert_eq!(self::problem(request), message);
        }
    }

    #[test]
    fn headers_of_the_host_are_refused() {
        for name in HOST_HEADERS {
            assert!(self::problem(get(URL).header(name, "1")).contains("is set by the host"), "{name}");
        }
    }

    #[test]
    fn json_sets_the_content_type_unless_the_handler_does() {
        let sent = |request: Request| {
            let fake = Fake::new().http(Response::new(200));
            request.send(&fake.context()).unwrap();
            fake.requests().remove(0)
        };
        let plain = sent(post(URL).json(&[1, 2]));
        assert_eq!((plain.header("content-type"), plain.text()), (Some("application/json"), "[1,2]".into()));
        let own = sent(post(URL).header("content-type", "application/ld+json").json(&()));
        assert_eq!((own.header("Content-Type"), own.text()), (Some("application/ld+json"), "null".into()));
        assert!(plain.header("user-agent").is_some_and(|agent| agent.starts_with("jobq-guest/")));
        assert_eq!(sent(get(URL).header("User-Agent", "me")).header("user-agent"), Some("me"));
    }

    #[test]
    fn the_response_body_is_limited() {
        let answer = |status, request: Request| {
            let fake = Fake::new().http(Response::new(status).with_body("12345"));
            request.send(&fake.context()).map(|response| response.text().into_owned())
        };
        assert_eq!(answer(200, get(URL).max_body(5)), Ok("12345".into()));
        let error = answer(200, get(URL).max_body(4)).unwrap_err();
        assert_eq!(error.to_string(), "GET https://example.com: the response is longer than 4 bytes");
        assert_eq!(answer(500, get(URL).max_body(4)), Ok("1234".into()), "the body of an error response is cut");
        assert_eq!(answer(200, get(URL).first_bytes(2)), Ok("12".into()));
    }

    #[test]
    #[should_panic(
        expected = "the handler sent GET https://example.com/path?token=secret, but the fake has no response left"
    )]
    fn an_unexpected_request_panics() {
        let _ = get(URL).send(&Fake::new().context());
    }

    #[test]
    fn a_request_ends_before_the_attempt_does() {
        let timeout = |request: Request, remaining| {
            let fake = Fake::new().remaining(Duration::from_millis(remaining)).http(Response::new(200));
            request.send(&fake.context()).unwrap();
            fake.requests()[0].timeout.as_millis()
        };
        assert_eq!(timeout(get(URL), 300_000), 30_000);
        assert_eq!(timeout(get(URL), 30_000), 29_000);
        assert_eq!(timeout(get(URL), 1_000), 900);
        assert_eq!(timeout(get(URL), 0), 0);
        assert_eq!(timeout(get(URL).timeout(Duration::from_secs(2)), 30_000), 2_000);
        assert_eq!(timeout(get(URL).timeout(Duration::MAX), 30_000), 29_000);
    }
}
