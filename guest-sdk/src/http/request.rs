//! A request, from its method to the answer.

use std::time::Duration;

use super::error::{Error, ErrorKind};
use super::response::Response;
use super::url::Url;
use crate::context::Context;
use crate::json::ToJson;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 8 << 20;

/// Of what is left of the attempt, this part is not given to a request, one second at most.
const RESERVED_PART: u32 = 10;
const MAX_RESERVE: Duration = Duration::from_secs(1);

/// What belongs to the connection, which is the host's.
const NOT_THE_GUESTS: [&str; 11] = [
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

/// Starts a GET.
pub fn get(url: impl AsRef<str>) -> Request {
    request("GET", url)
}

/// Starts a POST.
pub fn post(url: impl AsRef<str>) -> Request {
    request("POST", url)
}

/// Starts a PUT.
pub fn put(url: impl AsRef<str>) -> Request {
    request("PUT", url)
}

/// Starts a PATCH.
pub fn patch(url: impl AsRef<str>) -> Request {
    request("PATCH", url)
}

/// Starts a DELETE.
pub fn delete(url: impl AsRef<str>) -> Request {
    request("DELETE", url)
}

/// Starts a request of any method. What is wrong with the method or the URL is told by [`send`](Request::send).
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
        mistake: None,
    };
    if !is_token(method) {
        request.mistake(format!("{method:?} is no method"));
    }
    match url.parse() {
        Ok(url) => request.url = Some(url),
        Err(error) => request.mistake(format!("the URL is none: {error}")),
    }
    request
}

/// Builds a request; made by [`get`], [`post`] and their like.
#[derive(Clone, Debug)]
#[must_use = "there is no request before `send`"]
pub struct Request {
    method: String,
    url: Option<Url>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    timeout: Duration,
    max_body: usize,
    cut: bool,
    /// The first thing that makes this no request.
    mistake: Option<String>,
}

/// A request as the host gets it.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: String,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    /// From now until the answer has been read.
    pub(crate) timeout: Duration,
    pub(crate) max_body: usize,
    /// Whether a part of the answer's body is as good as all of it.
    pub(crate) cut: bool,
}

impl Request {
    /// Adds a header. Those of the connection are not the handler's to set: `Host`, `Content-Length`, `Transfer-Encoding` and the like.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Request {
        let value = value.as_ref();
        if !is_token(name) {
            self.mistake(format!("{name:?} is no name of a header"));
        } else if NOT_THE_GUESTS.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            self.mistake(format!("the header {name:?} belongs to the connection, a handler cannot set it"));
        } else if !value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
            // The value may be a secret.
            self.mistake(format!(
                "the value of the header {name:?} has a line break or another control character in it"
            ));
        } else {
            self.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sends this as the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// Sends the JSON of a value as the body, with `Content-Type: application/json` unless the request has one.
    pub fn json(mut self, value: &impl ToJson) -> Request {
        match value.to_json() {
            Ok(json) if json.is_empty() => self.body = Some("null".into()),
            Ok(json) => self.body = Some(json.into_bytes()),
            Err(error) => self.mistake(format!("failed to write its body as JSON: {error}")),
        }
        self.default_header("Content-Type", "application/json");
        self
    }

    /// How long it may take until the whole answer is there; 30 seconds without this. It never gets more than the attempt has.
    pub fn timeout(mut self, timeout: Duration) -> Request {
        self.timeout = timeout;
        self
    }

    /// How many bytes the body of the answer may have; 8 MiB without this.
    pub fn max_body(mut self, bytes: usize) -> Request {
        self.max_body = bytes;
        self
    }

    /// Takes only so many bytes of the answer's body, and is content if the rest is more, or never comes: for a request that is
    /// done once it has a status.
    pub fn first_bytes(mut self, bytes: usize) -> Request {
        self.max_body = bytes;
        self.cut = true;
        self
    }

    /// Sends the request and waits for the whole answer, whatever its status is.
    ///
    /// # Errors
    /// When there is no whole answer; `?` makes of it what is right for the job, as the [module](super) says.
    pub fn send(mut self, ctx: &Context) -> Result<Response, Error> {
        self.default_header("User-Agent", concat!("jobq-guest/", env!("CARGO_PKG_VERSION")));
        let name = match &self.url {
            Some(url) => format!("{} {}", self.method, url.origin()),
            None => self.method.clone(),
        };
        let (url, headers, timeout) = match (self.mistake, self.url) {
            (None, Some(url)) => (url, self.headers, self.timeout.min(time_for_a_request(ctx.remaining()))),
            (mistake, _) => return Err(Error::new(name, ErrorKind::Invalid(mistake.unwrap_or_default()))),
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

    fn mistake(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }
}

/// Leaves the handler a moment to say that there was no answer.
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

    fn mistake(request: Request) -> String {
        let fake = Fake::new().http(Response::new(200));
        let error = request.send(&fake.context()).unwrap_err();
        assert!(fake.requests().is_empty(), "it was sent");
        assert!(matches!(error.kind(), ErrorKind::Invalid(_)), "{error:?}");
        error.to_string()
    }

    #[test]
    fn what_is_no_request_is_not_sent() {
        for (request, message) in [
            (get("example.com"), "GET: the URL is none: it should begin with https:// or http://"),
            (request("GET /", URL), "GET / https://example.com: \"GET /\" is no method"),
            (get(URL).header("X Y", "1"), "GET https://example.com: \"X Y\" is no name of a header"),
            (get(URL).header("", "1"), "GET https://example.com: \"\" is no name of a header"),
            (
                get(URL).header("X", "secret\r\nY: 2"),
                "GET https://example.com: the value of the header \"X\" has a line break or another control character in it",
            ),
            (
                post(URL).header("HOST", "other.example"),
                "POST https://example.com: the header \"HOST\" belongs to the connection, a handler cannot set it",
            ),
            (
                post(URL).json(&BTreeMap::from([(vec![1], 2)])),
                "POST https://example.com: failed to write its body as JSON: key must be a string",
            ),
        ] {
            assert_eq!(self::mistake(request), message);
        }
    }

    #[test]
    fn headers_of_the_connection_are_refused() {
        for name in NOT_THE_GUESTS {
            assert!(self::mistake(get(URL).header(name, "1")).contains("belongs to the connection"), "{name}");
        }
    }

    #[test]
    fn json_has_its_type_unless_the_handler_says_another() {
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
    fn a_body_has_a_limit() {
        let answer = |status, request: Request| {
            let fake = Fake::new().http(Response::new(status).with_body("12345"));
            request.send(&fake.context()).map(|response| response.text().into_owned())
        };
        assert_eq!(answer(200, get(URL).max_body(5)), Ok("12345".into()));
        let error = answer(200, get(URL).max_body(4)).unwrap_err();
        assert_eq!(error.to_string(), "GET https://example.com: the answer is longer than 4 bytes");
        assert_eq!(answer(500, get(URL).max_body(4)), Ok("1234".into()), "it is an error anyway");
        assert_eq!(answer(200, get(URL).first_bytes(2)), Ok("12".into()));
    }

    #[test]
    #[should_panic(
        expected = "the handler sent GET https://example.com/path?token=secret, and the fake has no answer left"
    )]
    fn a_request_that_no_test_expects_is_a_panic() {
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
