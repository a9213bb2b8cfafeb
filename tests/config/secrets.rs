//! Secrets: read only by who runs guests, never shown.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jobq::config::{Settings, check};
use tempfile::TempDir;

use super::environment;

const VALUE: &str = "hunter2hunter2";

/// Settings whose one secret `KEY` of the type `a` is to be found in `from`, beside a directory that holds `key`.
fn settings(dir: &TempDir, from: &str) -> Settings {
    let text = format!("[jobs.a]\nsecrets = {{ KEY = {from} }}\n");
    check(&text, "jobq.toml", dir.path(), &environment(&[])).unwrap()
}

fn in_variable(value: impl Into<OsString>) -> impl Fn(&str) -> Option<OsString> {
    let value = value.into();
    move |name| (name == "THE_KEY").then(|| value.clone())
}

fn names(settings: &Settings) -> Vec<String> {
    settings.worker.job_types.of("a").grants.secrets.names().map(str::to_owned).collect()
}

fn file(dir: &TempDir, bytes: &[u8], mode: u32) {
    let path = dir.path().join("key");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn they_are_no_grants_before_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir, "{ env = \"THE_KEY\" }");
    assert!(names(&settings).is_empty());
    let settings = settings.with_secrets(in_variable(VALUE)).unwrap();
    assert_eq!(names(&settings), ["KEY"]);
    assert!(settings.worker.job_types.of("b").grants.secrets.is_empty());
}

#[test]
fn the_settings_do_not_show_them() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&dir, "{ env = \"THE_KEY\" }").with_secrets(in_variable(VALUE)).unwrap();
    let shown = format!("{settings:?} {settings:#?}");
    assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_file_is_read_without_its_last_newline() {
    let dir = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| {
        file(&dir, bytes, 0o640);
        settings(&dir, "{ file = \"key\" }").with_secrets(|_| None).unwrap()
    };
    let plain = read(VALUE.as_bytes());
    for bytes in [format!("{VALUE}\n"), format!("{VALUE}\r\n")] {
        assert_eq!(read(bytes.as_bytes()).worker, plain.worker);
    }
    assert_ne!(read(format!("{VALUE}\n\n").as_bytes()).worker, plain.worker, "only one of them");
    assert_eq!(plain.notes, Vec::<String>::new());
}

#[test]
fn a_file_that_everybody_can_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    file(&dir, VALUE.as_bytes(), 0o644);
    let notes = settings(&dir, "{ file = \"key\" }").with_secrets(|_| None).unwrap().notes;
    assert!(
        notes[0].starts_with("jobq.toml:2: every user of this machine can read") && notes[0].contains("chmod o-r"),
        "{notes:?}"
    );
}

#[test]
fn one_that_is_missing_or_no_good_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let variable = settings(&dir, "{ env = \"THE_KEY\" }");
    for (value, said) in [
        (None, "is not set"),
        (Some(OsString::new()), "is empty"),
        (Some("a\0b".into()), "holds a NUL"),
        (Some("1234567".into()), "is too short"),
        (Some("x".repeat(9000).into()), "is too long"),
        (Some(OsString::from_vec(vec![0xff; 10])), "is not UTF-8"),
    ] {
        let error = variable.clone().with_secrets(|_| value.clone()).unwrap_err().to_string();
        assert!(error.contains(&format!("the secret `KEY` of `a` {said}")), "{error}");
        assert!(error.contains("jobq.toml:2:") && error.contains("^^"), "{error}");
    }
    for (bytes, said) in
        [(None, "cannot be read"), (Some(&b"\n"[..]), "is empty"), (Some(&b"hunt\0er2hunter2"[..]), "holds a NUL")]
    {
        _ = fs::remove_file(dir.path().join("key"));
        bytes.into_iter().for_each(|bytes| file(&dir, bytes, 0o600));
        let error = settings(&dir, "{ file = \"key\" }").with_secrets(|_| None).unwrap_err().to_string();
        assert!(error.contains(&format!("the secret `KEY` of `a` {said}")) && !error.contains("hunt"), "{error}");
    }
}

#[test]
fn one_in_a_pipe_is_refused_instead_of_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("key")).status().unwrap();
    assert!(made.success());
    let error = settings(&dir, "{ file = \"key\" }").with_secrets(|_| None).unwrap_err().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
}

#[test]
fn a_variable_of_the_settings_names_where_one_is() {
    let variables = [("JOBQ_JOBS__A__SECRETS__API_KEY__ENV", "ELSEWHERE"), ("JOBQ_JOBS__A__SECRETS__other__FILE", "f")];
    let settings = check("[jobs.a]\n", "jobq.toml", Path::new("conf"), &environment(&variables)).unwrap();
    let secrets: Vec<String> = settings.secrets.iter().map(ToString::to_string).collect();
    assert_eq!(secrets, ["API_KEY from the variable ELSEWHERE", "other from the file conf/f"]);
    let error =
        check("[jobs.a]\n", "jobq.toml", Path::new("conf"), &environment(&[("JOBQ_JOBS__A__SECRETS__API_KEY", VALUE)]));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("jobs.a.secrets.API_KEY") && !error.contains("hunter2"), "{error}");
}
