//! Which file is read, and what is said when it cannot be.

use std::fs;
use std::path::PathBuf;

use jobq::config::{Environment, Location, load};

fn load_named(path: PathBuf) -> Result<jobq::config::Settings, jobq::config::ConfigError> {
    load(&Location::choose(Some(path), None), &Environment::default())
}

#[test]
fn the_flag_is_stronger_than_the_variable() {
    let choose = |flag: Option<&str>, variable: Option<&str>| {
        Location::choose(flag.map(PathBuf::from), variable.map(std::ffi::OsString::from))
    };
    assert_eq!(choose(Some("a"), Some("b")), Location::Named { path: "a".into(), by: "--config" });
    assert_eq!(choose(None, Some("b")), Location::Named { path: "b".into(), by: "JOBQ_CONFIG" });
    assert_eq!(choose(None, Some("")), Location::Default);
    assert_eq!(choose(None, None), Location::Default);
}

#[test]
fn relative_paths_start_at_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.toml");
    fs::write(&path, "[queue]\ndatabase = 'data/x.db'\n[jobs.a]\ndirs = [{ host = 'in', guest = '/in' }]\n").unwrap();
    let settings = load_named(path.clone()).unwrap();
    assert_eq!(settings.file, Some(path));
    assert_eq!(settings.queue.database, folder.path().join("data/x.db"));
    assert_eq!(settings.plugins.dir, folder.path().join("plugins"));
    assert_eq!(settings.worker.job_types.of("a").grants.dirs[0].host, folder.path().join("in"));
}

#[test]
fn a_named_file_must_be_there() {
    let error = load_named("/nowhere/jobq.toml".into()).unwrap_err().to_string();
    assert!(error.contains("`/nowhere/jobq.toml`") && error.contains("--config names this file"), "{error}");
}

#[test]
fn only_a_regular_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody ever writes to it, so that whoever opens it as usual waits for ever.
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [folder.path().to_owned(), pipe, "/dev/zero".into(), "/dev/null".into()] {
        let error = load_named(path.clone()).unwrap_err().to_string();
        assert!(error.contains("cannot read the settings from") && error.contains("not a regular file"), "{error}");
    }
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.toml");
    fs::File::create(&path).unwrap().set_len(5 << 20).unwrap();
    let error = load_named(path).unwrap_err().to_string();
    assert!(error.contains("longer than 4 MiB"), "{error}");
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin1.toml");
    fs::write(&path, b"[queue]\n# Gr\xf6\xdfe\ntable = 'x'\n").unwrap();
    let error = load_named(path).unwrap_err();
    let (_, line, column) = error.problems()[0].location().unwrap();
    assert_eq!((line, column), (2, 5));
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}
