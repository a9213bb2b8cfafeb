//! Fails on request: the handler `flaky`, for the demo and for experiments with retries and limits.
//!
//! `{"fail_times": 2, "then": "ok"}` fails in its first two attempts and completes in the third.
//! What `then` can be stands at [`Then`]; every field may be left out, and `{}` just completes.

mod payload;
mod snooze;
mod then;

use jobq_guest::{Context, Result, log, retry};

use crate::payload::Payload;

jobq_guest::handler!(flaky);

/// The result of the job.
#[derive(serde::Serialize)]
struct Done {
    attempt: u32,
    message: String,
}

fn flaky(payload: Payload, ctx: &Context) -> Result<Done> {
    let (attempt, fail_times) = (ctx.attempt(), payload.fail_times);
    if attempt <= fail_times {
        log::warn!("attempt {attempt} fails because `fail_times` is {fail_times}");
        let message = payload.message.unwrap_or_else(|| format!("failed on purpose, {attempt} of {fail_times} times"));
        return Err(retry(message));
    }
    then::run(&payload, ctx)?;
    let message = payload.message.unwrap_or_else(|| "completed on purpose".into());
    Ok(Done { attempt, message })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jobq_guest::Error;
    use jobq_guest::testing::Fake;

    use super::*;

    #[test]
    fn nothing_asked_for_is_ok() {
        assert_eq!(Fake::new().run(flaky, "{}"), Ok(r#"{"attempt":1,"message":"completed on purpose"}"#.into()));
    }

    #[test]
    fn unknown_fields_are_ignored() {
        assert!(Fake::new().run(flaky, r#"{"customer": {"id": 42}}"#).is_ok());
    }

    #[test]
    fn fails_so_many_times_and_then_completes() {
        let payload = r#"{"fail_times": 2, "message": "busy"}"#;
        assert_eq!(Fake::new().attempt(1).run(flaky, payload), Err(Error::Retry("busy".into())));
        let fake = Fake::new().attempt(2);
        assert_eq!(
            fake.run(flaky, r#"{"fail_times": 2}"#),
            Err(Error::Retry("failed on purpose, 2 of 2 times".into()))
        );
        assert_eq!(fake.logs(), ["warn: attempt 2 fails because `fail_times` is 2"]);
        assert_eq!(Fake::new().attempt(3).run(flaky, payload), Ok(r#"{"attempt":3,"message":"busy"}"#.into()));
    }

    #[test]
    fn answers_as_it_is_told() {
        for (then, answer) in [
            ("fatal", Error::Fatal("given up on purpose".into())),
            ("retry_after", Error::RetryAfter("failed on purpose".into(), Duration::from_millis(250))),
        ] {
            let payload = format!(r#"{{"then": "{then}", "ms": 250}}"#);
            assert_eq!(Fake::new().run(flaky, &payload), Err(answer), "{then}");
        }
    }

    #[test]
    fn sleeps_in_steps_and_wakes_when_cancelled() {
        let fake = Fake::new();
        fake.run(flaky, r#"{"then": "sleep", "ms": 3}"#).unwrap();
        assert_eq!(fake.progress(), [(100, "3 of 3 ms".into())]);
        let cancelled = Fake::new().cancelled().run(flaky, r#"{"then": "sleep", "ms": 60000}"#);
        assert_eq!(cancelled, Err(Error::Fatal("cancelled".into())));
    }

    #[test]
    fn panics_with_the_message() {
        let panic = std::panic::catch_unwind(|| Fake::new().run(flaky, r#"{"then": "panic", "message": "ouch"}"#));
        assert_eq!(panic.unwrap_err().downcast_ref::<String>().map(String::as_str), Some("ouch"));
    }

    #[test]
    fn a_typo_is_fatal() {
        let Err(Error::Fatal(message)) = Fake::new().run(flaky, r#"{"then": "explode"}"#) else { panic!("it is none") };
        assert!(
            message.starts_with("bad payload at `then`: unknown variant `explode`, expected one of `ok`, "),
            "{message}"
        );
    }
}
