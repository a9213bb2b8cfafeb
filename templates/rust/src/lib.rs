//! The handler of the job type `__name__`: doubles a number.

use std::time::Duration;

use jobq_guest::{Context, Result, fatal, log, retry, retry_after, snooze};
use serde::{Deserialize, Serialize};

/// The largest number that is accepted.
const MAX_N: i64 = 1_000_000;

#[derive(Deserialize)]
struct Payload {
    n: i64,
    #[serde(default)]
    service: Service,
}

/// The state of the service that does the doubling.
#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Service {
    #[default]
    Up,
    Down,
    Busy,
    Closed,
}

#[derive(Serialize)]
struct Answer {
    doubled: i64,
}

fn handle(job: Payload, ctx: &Context) -> Result<Answer> {
    let Payload { n, service } = job;
    // Another attempt wouldn't help: the job is dead at once. The same goes for a payload that can't be parsed.
    if !(0..=MAX_N).contains(&n) {
        return Err(fatal(format!("`n` is {n}, which is not in 0 to {MAX_N}")));
    }

    log::info!(
        "doubling {n}, attempt {} of {}",
        ctx.attempt(),
        ctx.max_attempts()
    );

    match service {
        Service::Up => Ok(Answer { doubled: n * 2 }),
        // The attempt fails, and the job runs again after the backoff of its type. `?` does the same with any error.
        Service::Down => Err(retry("the service is down")),
        // The attempt fails, and the job runs again after this delay.
        Service::Busy => Err(retry_after("the service is busy", Duration::from_secs(30))),
        // Not a failure: the job runs again after this delay, and the attempt isn't counted.
        Service::Closed => Err(snooze(Duration::from_secs(60))),
    }
}

jobq_guest::handler!(handle);

#[cfg(test)]
mod tests {
    use super::*;
    use jobq_guest::Error;
    use jobq_guest::testing::Fake;

    #[test]
    fn doubles() {
        let fake = Fake::new().attempt(2);
        assert_eq!(
            fake.run(handle, r#"{"n": 2}"#),
            Ok(r#"{"doubled":4}"#.into())
        );
        assert_eq!(fake.logs(), ["info: doubling 2, attempt 2 of 3"]);
    }

    #[test]
    fn a_number_out_of_range_is_fatal() {
        let answer = Fake::new().run(handle, r#"{"n": -1}"#);
        assert_eq!(
            answer,
            Err(Error::Fatal(
                "`n` is -1, which is not in 0 to 1000000".into()
            ))
        );
    }

    #[test]
    fn an_invalid_payload_is_fatal() {
        assert!(matches!(
            Fake::new().run(handle, r#"{"n": "2"}"#),
            Err(Error::Fatal(_))
        ));
    }

    #[test]
    fn other_service_states() {
        let answer = |payload| Fake::new().run(handle, payload);
        assert_eq!(
            answer(r#"{"n": 2, "service": "down"}"#),
            Err(Error::Retry("the service is down".into()))
        );
        assert!(matches!(
            answer(r#"{"n": 2, "service": "busy"}"#),
            Err(Error::RetryAfter(_, _))
        ));
        assert_eq!(
            answer(r#"{"n": 2, "service": "closed"}"#),
            Err(Error::Snooze(Duration::from_secs(60)))
        );
    }
}
