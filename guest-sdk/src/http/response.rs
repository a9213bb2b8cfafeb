//! An answer, and whether it is the one that was hoped for.

use std::borrow::Cow;

use super::error::{Error, ErrorKind};
use super::retry_after::retry_after;
use crate::json::FromJson;

/// Letters of an answer that an error repeats.
const EXCERPT: usize = 200;

/// The answer to a request, of any status, with its whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// What it answers, for errors.
    request: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    /// An answer for [`Fake::http`](crate::testing::Fake::http) to give, without headers and body.
    pub fn new(status: u16) -> Response {
        Response { request: String::new(), status, headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Response {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Has this body.
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

    /// Whether the status is one of success, 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header of this name, however it is capitalized. What is not UTF-8 in it is replaced by `�`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers, in the order in which they came.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.body
    }

    /// The body as text; what is not UTF-8 is replaced by `�`.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body read as JSON, however it is labelled.
    ///
    /// # Errors
    /// When it is none, or not of this type; the error names the place and shows how the body begins.
    pub fn json<T: FromJson>(&self) -> Result<T, Error> {
        let read = match std::str::from_utf8(&self.body) {
            Ok(text) => T::from_json(text),
            Err(error) => Err(format!(": {error}")),
        };
        read.map_err(|wrong| self.error(ErrorKind::Json(format!("{wrong}{}", self.excerpt()))))
    }

    /// Lets an answer of success pass, 200 to 299.
    ///
    /// # Errors
    /// On any other status: `?` makes 408, 425, 429 and 5xx another attempt, after `Retry-After` if the answer says so,
    /// and all others the end of the job. The message shows how the body begins.
    pub fn error_for_status(self) -> Result<Response, Error> {
        if self.is_success() {
            return Ok(self);
        }
        let retry_after = self.header("retry-after").and_then(|when| retry_after(when, self.header("date")));
        let to = match self.header("location").filter(|_| (300..400).contains(&self.status)) {
            Some(place) => format!(", a redirect to {}", place.split(['?', '#']).next().unwrap_or_default()),
            None => String::new(),
        };
        let detail = format!("{to}{}", self.excerpt());
        Err(self.error(ErrorKind::Status { status: self.status, retry_after, detail }))
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(self.request.clone(), kind)
    }

    /// How the body begins, in one line, to go on after a message.
    fn excerpt(&self) -> String {
        // A letter has four bytes at most.
        let start = &self.body[..self.body.len().min(4 * EXCERPT)];
        let text = String::from_utf8_lossy(start);
        let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = words.collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(EXCERPT).collect();
        match short.as_str() {
            "" => String::new(),
            whole if whole.len() == line.len() && start.len() == self.body.len() => format!("; it says: {whole}"),
            start => format!("; it begins: {start}…"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Error as Answer, Result};

    /// What becomes of a job whose handler got this answer.
    fn answer(response: Response) -> Result<u16> {
        let response = response.of("POST https://example.com".into());
        Ok(response.error_for_status()?.status())
    }

    #[test]
    fn success_passes() {
        for status in [200, 201, 204, 299] {
            assert_eq!(answer(Response::new(status)), Ok(status));
        }
    }

    #[test]
    fn a_status_that_may_pass_is_a_retry_and_any_other_the_end() {
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
    fn retry_after_is_heard_where_a_retry_makes_sense() {
        let message = |status| format!("POST https://example.com answered {status}");
        let with = |status, value| answer(Response::new(status).with_header("retry-after", value));
        for status in [408, 429, 500, 503] {
            assert_eq!(with(status, "120"), Err(Answer::RetryAfter(message(status), Duration::from_secs(120))));
        }
        assert_eq!(with(404, "120"), Err(Answer::Fatal(message(404))));
        assert_eq!(with(429, "soon"), Err(Answer::Retry(message(429))));
        assert_eq!(with(429, "0"), Err(Answer::Retry(message(429))), "no delay is no reason to forget the backoff");
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
    fn an_error_shows_how_the_answer_begins() {
        let response = Response::new(422).with_body("{\n  \"error\":\t\"no such plan\"\u{1b}[31m\n}\n");
        let says = r#"POST https://example.com answered 422; it says: { "error": "no such plan" [31m }"#;
        assert_eq!(answer(response), Err(Answer::Fatal(says.into())));

        let long = answer(Response::new(500).with_body("ñ".repeat(5_000))).unwrap_err().to_string();
        assert_eq!(long, format!("POST https://example.com answered 500; it begins: {}…", "ñ".repeat(200)));

        let binary = answer(Response::new(400).with_body([0, 0xff, 0xfe])).unwrap_err().to_string();
        assert_eq!(binary, "POST https://example.com answered 400; it says: ��");
    }

    #[test]
    fn a_redirect_names_its_place() {
        let response = Response::new(302).with_header("Location", "https://other.example/login?token=secret");
        let message = "POST https://example.com answered 302, a redirect to https://other.example/login";
        assert_eq!(answer(response), Err(Answer::Fatal(message.into())));
    }

    #[test]
    fn json_that_is_none_is_a_retry_that_shows_it() {
        let response = Response::new(200).with_body("<html>busy</html>").of("GET https://example.com".into());
        let read = || -> Result<Vec<u8>> { Ok(response.json()?) };
        let message = "GET https://example.com did not answer the JSON that was expected: \
                       expected value at line 1 column 1; it says: <html>busy</html>";
        assert_eq!(read(), Err(Answer::Retry(message.into())));

        let response = Response::new(200).with_body([0xff]).of("GET https://example.com".into());
        assert!(response.json::<String>().unwrap_err().to_string().contains("invalid utf-8"));
        assert_eq!(Response::new(200).with_body("[1]").json::<Vec<u8>>(), Ok(vec![1]));
    }

    #[test]
    fn headers_are_found_by_any_case() {
        let response = Response::new(200).with_header("X-One", "1").with_header("x-one", "2");
        assert_eq!(response.header("X-ONE"), Some("1"));
        assert_eq!(response.headers().count(), 2);
        assert_eq!(response.header("X-Two"), None);
    }
}
