//! The response to a request.

use std::borrow::Cow;

use super::error::{Error, ErrorKind};
use super::retry_after::retry_after;
use crate::json::FromJson;

/// The number of characters of a body that an error contains.
const EXCERPT: usize = 200;

/// The response to a request, of any status, with its complete body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Method and origin of the request, for errors.
    request: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    /// A response without headers and body, for [`Fake::http`](crate::testing::Fake::http).
    pub fn new(status: u16) -> Response {
        Response { request: String::new(), status, headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Response {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Response {
        self.body = body.into();
        self
    }

    pub(crate) fn of(mut self, request: String) -> Response {
        self.request = request;
        self
    }

    /// The status, such as 200.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header with this name, ignoring case. Invalid UTF-8 is replaced by `�`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers, in the order they were received.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Returns the body without copying it.
    pub fn into_bytes(self) -> Vec<u8> {
        self.body
    }

    /// The body as text; invalid UTF-8 is replaced by `�`.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Parses the body as JSON, regardless of its content type.
    ///
    /// # Errors
    /// If the body isn't JSON of this type. The error contains the path and the start of the body.
    pub fn json<T: FromJson>(&self) -> Result<T, Error> {
        let read = match std::str::from_utf8(&self.body) {
            Ok(text) => T::from_json(text),
            Err(error) => Err(format!(": {error}")),
        };
        read.map_err(|wrong| self.error(ErrorKind::Json(format!("{wrong}{}", self.excerpt()))))
    }

    /// Returns the response if its status is 200 to 299.
    ///
    /// # Errors
    /// On any other status. `?` makes 408, 425, 429 and 5xx a retry, after `Retry-After` if the response has it, and all others
    /// fatal. The message contains the start of the body.
    pub fn error_for_status(self) -> Result<Response, Error> {
        if self.is_success() {
            return Ok(self);
        }
        let retry_after = self.header("retry-after").and_then(|when| retry_after(when, self.header("date")));
        let to = match self.header("location").filter(|_| (300..400).contains(&self.status)) {
            Some(target) => format!(", a redirect to {}", target.split(['?', '#']).next().unwrap_or_default()),
            None => String::new(),
        };
        let detail = format!("{to}{}", self.excerpt());
        Err(self.error(ErrorKind::Status { status: self.status, retry_after, detail }))
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(self.request.clone(), kind)
    }

    /// The start of the body in one line, to append to a message.
    fn excerpt(&self) -> String {
        // A character has at most four bytes.
        let start = &self.body[..self.body.len().min(4 * EXCERPT)];
        let text = String::from_utf8_lossy(start);
        let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = words.collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(EXCERPT).collect();
        match short.as_str() {
            "" => String::new(),
            whole if whole.len() == line.len() && start.len() == self.body.len() => format!("; body: {whole}"),
            start => format!("; body starts with: {start}…"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Error as Answer, Result};

    /// The answer of a handler that received this response.
    fn answer(response: Response) -> Result<u16> {
        let response = response.of("POST https://example.com".into());
        Ok(response.error_for_status()?.status())
    }

    #[test]
    fn a_2xx_status_is_no_error() {
        for status in [200, 201, 204, 299] {
            assert_eq!(answer(Response::new(status)), Ok(status));
        }
    }

    #[test]
    fn a_temporary_status_is_a_retry_and_any_other_is_fatal() {
        for status in [408, 425, 429, 500, 501, 502, 503, 504, 599] {
            let message = format!("POST https://example.com answered {status}");
            assert_eq!(answer(Response::new(status)), Err(Answer::Retry(message)));
        }
        for status in [100, 301, 304, 400, 401, 403, 404, 409, 410, 422, 451, 600] {
            let message = format!("POST https://example.com answered {status}");
            assert_eq!(answer(Response::new(status)), Err(Answer::Fatal(message)));
        }
    }

    #[test]
    fn retry_after_applies_only_to_retries() {
        let message = |status| format!("POST https://example.com answered {status}");
        let with = |status, value| answer(Response::new(status).with_header("retry-after", value));
        for status in [408, 429, 500, 503] {
            assert_eq!(with(status, "120"), Err(Answer::RetryAfter(message(status), Duration::from_secs(120))));
        }
        assert_eq!(with(404, "120"), Err(Answer::Fatal(message(404))));
        assert_eq!(with(429, "soon"), Err(Answer::Retry(message(429))));
        assert_eq!(with(429, "0"), Err(Answer::Retry(message(429))), "a delay of 0 means the normal backoff");
    }

    #[test]
    fn retry_after_may_be_a_date() {
        let response = Response::new(503)
            .with_header("Date", "Mon, 30 Nov 2026 00:00:00 GMT")
            .with_header("Retry-After", "Mon, 30 Nov 2026 00:01:30 GMT");
        let message = "POST https://example.com answered 503".into();
        assert_eq!(answer(response), Err(Answer::RetryAfter(message, Duration::from_secs(90))));
    }

    #[test]
    fn an_error_contains_the_start_of_the_body() {
        let response = Response::new(422).with_body("{\n  \"error\":\t\"no such plan\"\u{1b}[31m\n}\n");
        let says = r#"POST https://example.com answered 422; body: { "error": "no such plan" [31m }"#;
        assert_eq!(answer(response), Err(Answer::Fatal(says.into())));

        let long = answer(Response::new(500).with_body("ñ".repeat(5_000))).unwrap_err().to_string();
        assert_eq!(long, format!("POST https://example.com answered 500; body starts with: {}…", "ñ".repeat(200)));

        let binary = answer(Response::new(400).with_body([0, 0xff, 0xfe])).unwrap_err().to_string();
        assert_eq!(binary, "POST https://example.com answered 400; body: ��");
    }

    #[test]
    fn a_redirect_is_fatal_and_names_its_target() {
        let response = Response::new(302).with_header("Location", "https://other.example/login?token=secret");
        let message = "POST https://example.com answered 302, a redirect to https://other.example/login";
        assert_eq!(answer(response), Err(Answer::Fatal(message.into())));
    }

    #[test]
    fn invalid_json_is_a_retry() {
        let response = Response::new(200).with_body("<html>busy</html>").of("GET https://example.com".into());
        let read = || -> Result<Vec<u8>> { Ok(response.json()?) };
        let message = "GET https://example.com didn't return the expected JSON: \
                       expected value at line 1 column 1; body: <html>busy</html>";
        assert_eq!(read(), Err(Answer::Retry(message.into())));

        let response = Response::new(200).with_body([0xff]).of("GET https://example.com".into());
        assert!(response.json::<String>().unwrap_err().to_string().contains("invalid utf-8"));
        assert_eq!(Response::new(200).with_body("[1]").json::<Vec<u8>>(), Ok(vec![1]));
    }

    #[test]
    fn header_names_ignore_case() {
        let response = Response::new(200).with_header("X-One", "1").with_header("x-one", "2");
        assert_eq!(response.header("X-ONE"), Some("1"));
        assert_eq!(response.headers().count(), 2);
        assert_eq!(response.header("X-Two"), None);
    }
}
