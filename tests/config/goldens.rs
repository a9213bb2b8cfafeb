//! Each `accepted/*.toml` has a `.txt` with the checked settings, each `refused/*.toml` an `.err` with the exact message.
//!
//! `BLESS=1` updates them; a line `# env: NAME=value` sets a variable.

use std::fs;
use std::path::{Path, PathBuf};

use jobq::config::{Look, check};

use super::environment;
use super::rendering::render;

#[test]
fn accepted_settings_have_the_expected_values() {
    for case in cases("accepted") {
        let settings = run(&case).unwrap_or_else(|error| panic!("{}\n{error}", case.display()));
        compare(&case.with_extension("txt"), &render(&settings));
    }
}

#[test]
fn refused_settings_have_the_expected_message() {
    for case in cases("refused") {
        let Err(error) = run(&case) else { panic!("{} is accepted", case.display()) };
        let message = error.render(Look::Plain);
        let clean: Vec<&str> = message.lines().map(str::trim_end).collect();
        compare(&case.with_extension("err"), &(clean.join("\n") + "\n"));
    }
}

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/config").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    cases.sort();
    assert!(cases.len() > 3);
    cases
}

fn run(case: &Path) -> Result<jobq::config::Settings, jobq::config::ConfigError> {
    let text = fs::read_to_string(case).unwrap();
    let variables: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("# env: ")?.split_once('=')).collect();
    let name = case.file_name().unwrap().to_str().unwrap();
    check(&text, name, Path::new("conf"), &environment(&variables))
}

fn compare(golden: &Path, actual: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(golden, actual).unwrap();
    }
    let expected = fs::read_to_string(golden).unwrap_or_default();
    assert_eq!(expected, actual, "{}: BLESS=1 updates it", golden.display());
}
