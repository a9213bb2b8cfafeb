//! Precedence: defaults < file < environment; and every key does something.

use std::path::{Path, PathBuf};

use jobq::config::{check, keys};

use super::{check_text, environment};

const FILE: &str = "[queue]\ndatabase = 'file.db'\n[worker]\nconcurrency = 3\n";

#[test]
fn each_layer_overrides_the_one_below() {
    let variables = [("JOBQ_WORKER__CONCURRENCY", "5"), ("JOBQ_QUEUE__DATABASE", "variable.db")];
    let read = |text, variables: &[_]| {
        let settings = check(text, "jobq.toml", Path::new("conf"), &environment(variables)).unwrap();
        (settings.worker.concurrency.get(), settings.queue.database)
    };
    assert_eq!(read("", &[]).1, PathBuf::from("conf/jobq.db"));
    assert_eq!(read(FILE, &[]), (3, "conf/file.db".into()));
    assert_eq!(read(FILE, &variables), (5, "conf/variable.db".into()));
}

#[test]
fn a_default_given_by_a_variable_yields_to_the_key_of_a_type() {
    let text = "[jobs.a]\ntimeout = '5s'\n[jobs.b]\n";
    let rules = check_text(text, &[("JOBQ_DEFAULTS__TIMEOUT", "7s")]).unwrap().worker.job_types;
    assert_eq!(rules.of("a").limits.timeout.as_secs(), 5);
    assert_eq!(rules.of("b").limits.timeout.as_secs(), 7);
    assert_eq!(rules.of("dropped").limits.timeout.as_secs(), 7);
}

#[test]
fn variables_of_others_are_ignored() {
    let others = [("JOBQ_CONFIG", "x"), ("JOBQ_JOB_ID", "7"), ("JOBQ_", ""), ("JOBQ_MY_APP__KEY", "1"), ("HOME", "/")];
    let settings = check_text("", &others).unwrap();
    assert_eq!(settings, check_text("", &[]).unwrap());
}

#[test]
fn an_empty_variable_is_not_the_same_as_none() {
    let error = check_text("", &[("JOBQ_QUEUE__DATABASE", "")]).unwrap_err().to_string();
    assert!(error.contains("JOBQ_QUEUE__DATABASE="), "{error}");
}

#[test]
fn a_variable_is_taken_as_it_is_written() {
    for text in ["5#x", "true", "1979-05-27", "[x", "a = b", "12\nb = 3", " x "] {
        let settings = check_text("", &[("JOBQ_QUEUE__DATABASE", text)]).unwrap();
        assert_eq!(settings.queue.database, PathBuf::from("conf").join(text));
    }
}

/// A value for each key that differs from its default and from that of a file without it.
fn another_value(key: &str) -> &'static str {
    match key {
        "queue.durability" => "normal",
        "queue.table" => "other",
        "queue.database" | "plugins.dir" | "plugins.cache_dir" => "elsewhere",
        "worker.types" | "jobs.NAME.enqueue" => "a",
        "worker.poll_interval" => "77ms",
        "jobs.NAME.plugin" => "other.wasm",
        "jobs.NAME.env" => "{ A = 'b' }",
        "jobs.NAME.dirs" => "[{ host = 'h', guest = '/g' }]",
        "jobs.NAME.secrets" => "{ A = { env = 'B' } }",
        "jobs.NAME.http" => "['https://example.com']",
        "defaults.dead_on" => "lost",
        "defaults.backoff" => "{ base = '1s' }",
        "defaults.backoff.jitter" => "0.7",
        "defaults.max_timeout" | "defaults.backoff.max" => "3h",
        key if key.ends_with("max_payload")
            || key.ends_with("memory")
            || key.ends_with("_result")
            || key.ends_with("_response") =>
        {
            "99KiB"
        }
        key if key.ends_with("concurrency") || key.ends_with("max_attempts") || key.ends_with("priority") => "5",
        "defaults.max_log" | "defaults.fuel" => "123",
        _ => "3s",
    }
}

#[test]
fn every_key_changes_something_by_its_variable() {
    let text = "[jobs.NAME]\n";
    let before = check_text(text, &[]).unwrap();
    for key in keys().iter().filter(|key| *key != "server.listen" && !key.starts_with("jobs.NAME.dirs.")) {
        let variable = format!("JOBQ_{}", key.replace('.', "__").to_uppercase());
        let after = check_text(text, &[(&variable, another_value(key))]).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(before, after, "{key}");
    }
}

#[test]
fn every_default_can_be_changed_for_one_type() {
    let text = "[jobs.NAME]\n";
    let before = check_text(text, &[]).unwrap();
    for key in keys().iter().filter_map(|key| key.strip_prefix("defaults.")) {
        let variable = format!("JOBQ_JOBS__NAME__{}", key.replace('.', "__").to_uppercase());
        let value = another_value(&format!("defaults.{key}"));
        let after = check_text(text, &[(&variable, value)]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(before.worker.job_types.default, after.worker.job_types.default, "{key}");
        assert_ne!(before.worker.job_types.of("NAME"), after.worker.job_types.of("NAME"), "{key}");
    }
}
