//! A file with one payload per line. A line that also has an expectation is a test case.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::attempt::Attempt;
use crate::cli::exit::Failure;
use crate::config::suggest;
use crate::queue::Payload;

/// Invalid lines that are reported.
const MAX_PROBLEMS: usize = 20;

/// The outcomes of an attempt without a daemon.
const OUTCOMES: [&str; 7] = ["completed", "failed", "snoozed", "trapped", "timed_out", "out_of_fuel", "out_of_memory"];

/// One line.
#[derive(Debug)]
pub(super) struct Case {
    /// Its line number; the first is 1.
    pub(super) line: usize,
    pub(super) name: Option<String>,
    pub(super) payload: Payload,
    /// The attempt number, if the case sets one.
    pub(super) attempt: Option<u32>,
    expected: Expected,
}

/// The expectation. The default is that the attempt completes.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    outcome: Option<String>,
    /// A part of the message.
    error: Option<String>,
    #[serde(default, deserialize_with = "including_null")]
    result: Option<Value>,
    fatal: Option<bool>,
    after_ms: Option<u64>,
}

/// A line with a payload and an expectation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLine {
    payload: Box<RawValue>,
    expect: Value,
    attempt: Option<u32>,
    name: Option<String>,
}

/// `null` is a result too.
fn including_null<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Parses all lines of `file`.
///
/// # Errors
/// When lines are invalid: reports all of them, with line and column.
pub(super) fn parse(file: &str, bytes: &[u8], max_payload: usize) -> Result<Vec<Case>, Failure> {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match case(at + 1, line, max_payload) {
            Ok(case) => cases.push(case),
            Err(problem) => problems.push(format!("  line {}{problem}", at + 1)),
        }
    }
    if problems.is_empty() && cases.is_empty() {
        return Err(Failure::usage(format!("`{file}` has no payloads: expected one JSON value per line")));
    }
    if problems.is_empty() {
        return Ok(cases);
    }
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let message = format!("nothing was run, because `{file}` has invalid lines:\n{}{more}", problems.join("\n"));
    Err(Failure::usage(message)
        .hint("expected a payload per line, or {\"payload\": {}, \"expect\": {}}; see `jobq plugin run --help`"))
}

/// Parses a line. The error starts with `, column 3: ` if the column is known.
fn case(number: usize, line: &[u8], max_payload: usize) -> Result<Case, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!(", column {}: this is not UTF-8", error.valid_up_to() + 1))?;
    let keys: BTreeMap<String, IgnoredAny> = serde_json::from_str(text).unwrap_or_default();
    if let Some(misspelled) = misspelled_expect(&keys) {
        return Err(format!(": unknown key `{misspelled}`, did you mean `expect`?"));
    }
    if !(keys.contains_key("payload") && keys.contains_key("expect")) {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| with_column(&error))?;
        let payload = payload(text.trim_ascii(), max_payload)?;
        return Ok(Case { line: number, name: None, payload, attempt: None, expected: Expected::default() });
    }
    let line: CaseLine = serde_json::from_str(text).map_err(|error| with_column(&error))?;
    if line.attempt == Some(0) {
        return Err(": attempt is 0, but attempts start at 1".to_owned());
    }
    Ok(Case {
        line: number,
        name: line.name,
        payload: payload(line.payload.get(), max_payload)?,
        attempt: line.attempt,
        expected: expected(line.expect)?,
    })
}

/// A key next to `payload` that is probably a misspelled `expect`.
fn misspelled_expect(keys: &BTreeMap<String, IgnoredAny>) -> Option<&str> {
    let is_case = keys.contains_key("payload") && !keys.contains_key("expect");
    let near = |key: &&String| suggest::closest(key, ["expect"]).is_some();
    is_case.then(|| keys.keys().find(near))?.map(String::as_str)
}

fn payload(text: &str, max: usize) -> Result<Payload, String> {
    Payload::parse(text.to_owned(), max).map_err(|error| format!(": {error}"))
}

/// The message of serde_json, with the column first.
fn with_column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.split_once(" at line 1 column").map_or(text.as_str(), |(message, _)| message);
    format!(", column {}: {message}", error.column())
}

/// An object with `outcome` describes how the attempt must end. Anything else is the expected result.
fn expected(expect: Value) -> Result<Expected, String> {
    if expect.get("outcome").is_none() {
        return Ok(Expected { result: Some(expect), ..Expected::default() });
    }
    let expected = Expected::deserialize(expect).map_err(|error| format!(": expect: {error}"))?;
    match &expected.outcome {
        Some(word) if !OUTCOMES.contains(&word.as_str()) => {
            let near = suggest::closest(word, OUTCOMES).map(|near| format!("did you mean `{near}`? "));
            let all = OUTCOMES.join(", ");
            Err(format!(": `{word}` is not an outcome: {}expected one of {all}", near.unwrap_or_default()))
        }
        _ => Ok(expected),
    }
}

impl Case {
    /// The difference between an attempt and the expectation, if there is one.
    pub(super) fn difference(&self, run: &Attempt) -> Option<String> {
        let Expected { outcome, error, result, fatal, after_ms } = &self.expected;
        let message = run.error.as_deref().map_or(String::new(), |error| format!(": {error}"));
        let (wanted, got) = (outcome.as_deref().unwrap_or("completed"), run.outcome.as_str());
        if wanted != got {
            return Some(format!("expected {wanted}, got {got}{message}"));
        }
        if let Some(part) = error
            && !run.error.as_ref().is_some_and(|error| error.contains(part))
        {
            return Some(format!("expected an error containing {part:?}, got {got}{message}"));
        }
        if let Some(fatal) = fatal.filter(|fatal| *fatal != run.fatal) {
            let word = |fatal| if fatal { "a fatal failure" } else { "a failure that is retried" };
            return Some(format!("expected {}, got {}{message}", word(fatal), word(run.fatal)));
        }
        if after_ms.is_some() && *after_ms != run.after_ms {
            let text = |ms: Option<u64>| ms.map_or("no delay".to_owned(), |ms| format!("a delay of {ms} ms"));
            return Some(format!("expected {}, got {}", text(*after_ms), text(run.after_ms)));
        }
        let wanted = result.as_ref()?;
        let got = run.result.as_deref().unwrap_or_default();
        (!is_result(wanted, got)).then(|| format!("expected the result {wanted}\n     got the result {got}"))
    }
}

/// Whether a result is the wanted value: compared as JSON if it is JSON, otherwise as text.
fn is_result(wanted: &Value, got: &str) -> bool {
    match serde_json::from_str(got) {
        Ok(got) => same(wanted, &got),
        Err(_) => wanted.as_str() == Some(got),
    }
}

/// JSON equality: `1` equals `1.0`, and the order of keys doesn't matter.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(line: &str) -> String {
        case(1, line.as_bytes(), 100).map(|case| format!("{case:?}")).unwrap_err()
    }

    #[test]
    fn a_line_is_a_payload_unless_it_has_payload_and_expect() {
        for text in ["3", r#"{"payload": 1}"#, r#"{"expect": 1, "other": 2}"#, r#"["payload", "expect"]"#] {
            let case = case(1, text.as_bytes(), 100).unwrap();
            assert_eq!((case.payload.as_str(), case.expected), (text, Expected::default()));
        }
        let case = case(1, br#"{"payload": {"n":1.0}, "expect": {"n": 2}, "attempt": 3}"#, 100).unwrap();
        assert_eq!((case.payload.as_str(), case.attempt), (r#"{"n":1.0}"#, Some(3)));
        assert_eq!(case.expected, Expected { result: Some(json!({"n": 2})), ..Expected::default() });
    }

    #[test]
    fn invalid_lines_are_reported_with_their_column() {
        assert_eq!(problem("{'a': 1}"), ", column 2: key must be a string");
        assert_eq!(problem("\"a\" 1"), ", column 5: trailing characters");
        let unknown = problem(r#"{"payload": 1, "expect": 2, "exspect": 3}"#);
        assert!(unknown.starts_with(", column 37: unknown field `exspect`"), "{unknown}");
        let misspelled = problem(r#"{"payload": 1, "expct": 2}"#);
        assert_eq!(misspelled, ": unknown key `expct`, did you mean `expect`?");
        assert_eq!(case(1, b"\"\xff\"", 100).unwrap_err(), ", column 2: this is not UTF-8");
    }

    #[test]
    fn unknown_outcomes_and_keys_are_reported() {
        let unknown = problem(r#"{"payload": 1, "expect": {"outcome": "fail"}}"#);
        assert!(
            unknown.starts_with(": `fail` is not an outcome: did you mean `failed`? expected one of completed,"),
            "{unknown}"
        );
        let unknown = problem(r#"{"payload": 1, "expect": {"outcome": "failed", "message": "x"}}"#);
        assert!(unknown.starts_with(": expect: unknown field `message`"), "{unknown}");
    }

    #[test]
    fn results_are_compared_as_json_or_as_text() {
        assert!(is_result(&json!({"a": 1, "b": [2.0]}), r#"{"b":[2], "a": 1.0}"#));
        assert!(!is_result(&json!({"a": 1}), r#"{"a": 1, "b": 2}"#));
        assert!(!is_result(&json!([1]), "[1, 1]"));
        assert!(!is_result(&json!(9_007_199_254_740_993_u64), "9007199254740992"));
        assert!(is_result(&json!("hello world"), "hello world"));
        assert!(!is_result(&json!("hello"), "hello world"));
        assert!(is_result(&json!(null), "null"));
    }
}
