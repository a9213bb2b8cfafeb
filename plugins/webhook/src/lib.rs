//! A webhook: posts JSON to a URL, signed and with an idempotency key: the handler `webhook`.
//!
//! `{"url": "https://hooks.example.com/orders", "body": {"order": 17}, "headers": {"X-Event": "paid"}}` is one POST.
//! The body arrives byte for byte as it stands there. `timeout_ms` is 10,000 unless the payload says otherwise.
//! jobq.toml has to grant the origin: `http = ["https://hooks.example.com"]`.
//!
//! The headers `Idempotency-Key` and `webhook-id` are the id of the job, the same in every attempt, by which a receiver tells a
//! message that it has already. With the variable WEBHOOK_SECRET, `webhook-timestamp` and `webhook-signature` are those of
//! Standard Webhooks 1.0, new in every attempt.
//!
//! Any status of success completes the job. Whatever may pass is another attempt, at the time that `Retry-After` names;
//! whatever will not, such as 404, makes the job dead.

mod payload;
mod signature;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jobq_guest::{Context, Error, Result, http, log, retry};

use crate::payload::Hook;
use crate::signature::Secret;

/// Bytes of the answer that the result keeps.
const KEPT: usize = 1_000;

jobq_guest::handler!(webhook);

/// The result of the job.
#[derive(serde::Serialize)]
struct Delivered {
    status: u16,
    signed: bool,
    /// How the receiver's answer begins.
    answer: String,
}

fn webhook(hook: Hook, ctx: &Context) -> Result<Delivered> {
    deliver(&hook, std::env::var("WEBHOOK_SECRET").ok().as_deref(), ctx)
}

fn deliver(hook: &Hook, secret: Option<&str>, ctx: &Context) -> Result<Delivered> {
    let secret = secret.map(Secret::parse).transpose().map_err(|wrong| not_signed(wrong, ctx))?;
    let request = request(hook, secret.as_ref(), ctx)?;

    let start = Instant::now();
    let response = request.send(ctx)?;
    let (status, origin) = (response.status(), hook.url.origin());
    log::info!("{origin} answered {status} within {} ms", start.elapsed().as_millis());

    let response = response.error_for_status()?;
    Ok(Delivered { status, signed: secret.is_some(), answer: response.text().into_owned() })
}

/// Worth another attempt, like all that the settings can mend.
fn not_signed(wrong: &str, ctx: &Context) -> Error {
    retry(format!("the variable WEBHOOK_SECRET {wrong}; jobq.toml sets it under [jobs.{}]", ctx.job_type()))
}

fn request(hook: &Hook, secret: Option<&Secret>, ctx: &Context) -> Result<http::Request> {
    let body = hook.body.get();
    let mut request = http::post(hook.url.to_string()).body(body).timeout(hook.timeout()).first_bytes(KEPT);
    for (name, value) in &hook.headers {
        request = request.header(name, value);
    }
    let mut own = vec![
        ("Content-Type", "application/json".into()),
        ("Idempotency-Key", ctx.job_id().into()),
        ("webhook-id", ctx.job_id().into()),
    ];
    if let Some(secret) = secret {
        let second = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        own.push(("webhook-timestamp", second.to_string()));
        own.push(("webhook-signature", secret.sign(ctx.job_id(), second, body)?));
    }
    for (name, value) in own.into_iter().filter(|(name, _)| !hook.sets(name)) {
        request = request.header(name, value);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jobq_guest::http::{ErrorKind, Response};
    use jobq_guest::testing::{Fake, HttpRequest};

    use super::*;

    const PAID: &str =
        r#"{"url": "https://hooks.example.com/orders?k=v", "body": {"order":  17, "id": 12345678901234567890}}"#;
    const ID: &str = "01934f6e-7a00-7000-8000-000000000001";

    fn run(fake: &Fake, secret: Option<&str>, payload: &str) -> Result<String> {
        fake.run(|hook: Hook, ctx: &Context| deliver(&hook, secret, ctx), payload)
    }

    fn sent(secret: Option<&str>, payload: &str) -> HttpRequest {
        let fake = Fake::new().http(Response::new(200));
        run(&fake, secret, payload).unwrap();
        fake.requests().remove(0)
    }

    #[test]
    fn posts_the_body_as_it_stands_in_the_payload() {
        let fake = Fake::new().http(Response::new(202).with_body("taken"));
        let answer = run(&fake, None, PAID);
        assert_eq!(answer, Ok(r#"{"status":202,"signed":false,"answer":"taken"}"#.into()));

        let [request] = &fake.requests()[..] else { panic!("not one request") };
        assert_eq!((&*request.method, &*request.url), ("POST", "https://hooks.example.com/orders?k=v"));
        assert_eq!(request.text(), r#"{"order":  17, "id": 12345678901234567890}"#);
        assert_eq!(request.timeout, Duration::from_secs(10));
        for (name, value) in [("content-type", "application/json"), ("idempotency-key", ID), ("webhook-id", ID)] {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
        assert_eq!(request.header("webhook-signature"), None);
        assert!(
            fake.logs()[0].starts_with("info: https://hooks.example.com answered 202 within "),
            "{:?}",
            fake.logs()
        );
    }

    #[test]
    fn signs_what_it_sends() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let request = sent(Some(secret), PAID);
        let second = request.header("webhook-timestamp").unwrap().parse().unwrap();
        let signature = Secret::parse(secret).unwrap().sign(ID, second, &request.text()).unwrap();
        assert_eq!(request.header("webhook-signature"), Some(&*signature));
    }

    #[test]
    fn headers_of_the_payload_are_stronger() {
        let payload = r#"{"url": "https://a.example", "body": null, "timeout_ms": 500,
            "headers": {"X-Event": "paid", "content-type": "application/cloudevents+json", "IDEMPOTENCY-KEY": "order 17"}}"#;
        let request = sent(None, payload);
        assert_eq!(request.text(), "null");
        assert_eq!(request.timeout, Duration::from_millis(500));
        assert_eq!(request.header("x-event"), Some("paid"));
        let values = |name: &str| -> Vec<&str> {
            let same = request.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
            same.map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(values("content-type"), ["application/cloudevents+json"]);
        assert_eq!(values("idempotency-key"), ["order 17"]);
        assert_eq!(values("webhook-id"), [ID]);
    }

    #[test]
    fn the_receiver_decides_about_the_next_attempt() {
        let with = |response| run(&Fake::new().http(response), None, PAID);
        assert_eq!(
            with(Response::new(429).with_header("Retry-After", "30").with_body("slow down")),
            Err(Error::RetryAfter(
                "POST https://hooks.example.com answered 429; body: slow down".into(),
                Duration::from_secs(30)
            ))
        );
        assert_eq!(with(Response::new(503)), Err(Error::Retry("POST https://hooks.example.com answered 503".into())));
        assert_eq!(
            with(Response::new(410).with_body("<h1>gone</h1>")),
            Err(Error::Fatal("POST https://hooks.example.com answered 410; body: <h1>gone</h1>".into()))
        );
    }

    #[test]
    fn a_long_answer_is_delivered_all_the_same() {
        let answer = run(&Fake::new().http(Response::new(200).with_body("x".repeat(5_000))), None, PAID).unwrap();
        assert!(answer.contains(&format!("\"{}\"", "x".repeat(KEPT))), "{answer}");
    }

    #[test]
    fn a_network_that_fails_is_another_attempt() {
        let fake = Fake::new().http_fails(ErrorKind::Timeout(Duration::from_secs(10)));
        let message = "POST https://hooks.example.com: no complete response within 10s";
        assert_eq!(run(&fake, None, PAID), Err(Error::Retry(message.into())));
    }

    #[test]
    fn what_will_never_be_a_request_is_fatal() {
        for (payload, message) in [
            (
                r#"{"url": "hooks.example.com", "body": {}}"#,
                "bad payload at `url`: invalid URL: it must start with https:// or http:// at line 1 column 27",
            ),
            (r#"{"url": "https://a.example"}"#, "bad payload: missing field `body` at line 1 column 28"),
            (
                r#"{"url": "https://a.example", "body": 1, "headers": {"Host": "b.example"}}"#,
                "POST https://a.example: the header \"Host\" is set by the host; a handler can't set it",
            ),
            (
                r#"{"url": "https://a.example", "body": 1, "headers": {"X": "a\r\nY: b"}}"#,
                "POST https://a.example: the value of the header \"X\" contains a control character, such as a line break",
            ),
        ] {
            assert_eq!(run(&Fake::new(), None, payload), Err(Error::Fatal(message.into())), "{payload}");
        }
    }

    #[test]
    fn nothing_is_sent_unsigned_when_the_secret_is_none() {
        let fake = Fake::new().http(Response::new(200));
        let message = "the variable WEBHOOK_SECRET is empty; jobq.toml sets it under [jobs.test]";
        assert_eq!(run(&fake, Some(""), PAID), Err(Error::Retry(message.into())));
        assert!(fake.requests().is_empty());
    }
}
