//! The job type `__name__`: doubles a number.
//!
//! An ordinary program: the payload is on stdin, the result goes to stdout, and exit status 0
//! means success. With any other status, the job runs again later, and the end of stderr is the error message.

use std::io::{self, Read};
use std::process::ExitCode;

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
}

#[derive(Serialize)]
struct Answer {
    doubled: i64,
}

fn main() -> ExitCode {
    match run(io::stdin()) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut input: impl Read) -> Result<String, String> {
    let mut text = String::new();
    input
        .read_to_string(&mut text)
        .map_err(|error| format!("failed to read stdin: {error}"))?;
    let payload: Payload =
        serde_json::from_str(&text).map_err(|error| format!("bad payload: {error}"))?;
    let answer = double(payload)?;
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

fn double(payload: Payload) -> Result<Answer, String> {
    let Payload { n, service } = payload;
    if !(0..=MAX_N).contains(&n) {
        return Err(format!("`n` is {n}, which is not in 0 to {MAX_N}"));
    }
    // `jobq logs ID` shows what is written to stderr.
    eprintln!("doubling {n}");
    match service {
        Service::Up => Ok(Answer { doubled: n * 2 }),
        Service::Down => Err("the service is down".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn doubles() {
        assert_eq!(run(r#"{"n": 2}"#.as_bytes()), Ok(r#"{"doubled":4}"#.into()));
    }

    #[test]
    fn errors_describe_the_problem() {
        let error = |payload: &str| run(payload.as_bytes()).expect_err(payload);
        assert_eq!(
            error(r#"{"n": -1}"#),
            "`n` is -1, which is not in 0 to 1000000"
        );
        assert_eq!(
            error(r#"{"n": 2, "service": "down"}"#),
            "the service is down"
        );
        assert!(error("{").starts_with("bad payload: "), "{}", error("{"));
    }
}
