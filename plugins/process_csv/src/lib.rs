//! Totals of a CSV file of sales: the handler `process_csv`.
//!
//! `{"path": "sales.csv", "format": "monthly"}` asks for a file in `/data`, the directory that jobq.toml grants.
//! Its columns are `date` (YYYY-MM-DD), `category`, `amount` (of the whole line, exact, negative for a refund)
//! and perhaps `quantity`; their order is free, and other columns may stand between them.
//! The file passes through once and is never held in memory.

mod payload;
mod summary;

use jobq_guest::{Context, Result, log};
use sales::Failure;

use crate::payload::Payload;
use crate::summary::{Summary, summarize};

jobq_guest::handler!(process);

fn process(payload: Payload, ctx: &Context) -> Result<Summary> {
    let (file, size) = payload.path.open().map_err(answer)?;
    let path = payload.path.as_str();
    log::info!("{path}: {size} bytes to read");

    let summary = summarize(file, size, &payload, ctx).map_err(|failure| answer(failure.in_file(path)))?;

    let all = &summary.totals.all;
    ctx.progress(100, format!("{} rows", all.rows));
    log::info!("{path}: {} rows, {} in all", all.rows, all.total);
    Ok(summary)
}

fn answer(failure: Failure) -> jobq_guest::Error {
    match failure {
        Failure::Retry(message) => jobq_guest::retry(message),
        Failure::Fatal(message) => jobq_guest::fatal(message),
    }
}

#[cfg(test)]
mod tests {
    use jobq_guest::Error;
    use jobq_guest::testing::Fake;

    use super::*;

    #[test]
    fn a_bad_payload_is_fatal_and_says_why() {
        for (json, message) in [
            ("", "bad payload: EOF while parsing a value at line 1 column 0"),
            (r#"{"format": "monthly"}"#, "bad payload: missing field `path` at line 1 column 21"),
            (r#"{"path": "a.csv"}"#, "bad payload: missing field `format` at line 1 column 17"),
            (
                r#"{"path": "a.csv", "format": "weekly"}"#,
                "bad payload at `format`: unknown variant `weekly`, expected `monthly` or `category` at line 1 column 36",
            ),
            (r#"{"path": "a.csv", "fromat": "monthly"}"#, "bad payload: missing field `format` at line 1 column 38"),
            (
                r#"{"path": "../a.csv", "format": "monthly"}"#,
                r#"bad payload at `path`: "../a.csv" leads out of /data at line 1 column 19"#,
            ),
        ] {
            assert_eq!(Fake::new().run(process, json), Err(Error::Fatal(message.into())));
        }
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let payload = r#"{"path": "sales.csv", "format": "monthly", "customer": {"id": 42}}"#;
        let answer = Fake::new().run(process, payload);
        assert!(matches!(&answer, Err(Error::Retry(message)) if message.contains("no directory")), "{answer:?}");
    }

    #[test]
    fn a_type_without_the_directory_is_told_how_to_get_it() {
        let answer = Fake::new().run(process, r#"{"path": "sales.csv", "format": "monthly"}"#);
        let Err(Error::Retry(message)) = answer else { panic!("{answer:?}") };
        assert!(
            message.starts_with("this job type has no directory /data; jobq.toml grants one with dirs = "),
            "{message}"
        );
    }
}
