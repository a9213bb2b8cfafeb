//! The crate's copy of the contract equals the original.

use std::fs;
use std::path::Path;

use jobq_guest::CONTRACT;

const COPY: &str = include_str!("../wit/handler.wit");

#[test]
fn the_copy_equals_the_original() {
    // The original doesn't exist beside a published crate.
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/handler.wit");
    if let Ok(original) = fs::read_to_string(original) {
        assert!(COPY == original, "wit/handler.wit has changed: copy it to guest-sdk/wit/handler.wit");
    }
}

#[test]
fn the_documented_version_is_right() {
    assert!(COPY.starts_with(&format!("package jobq:handler@{CONTRACT};")));
    let readme = include_str!("../README.md");
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    assert!(
        readme.contains(&format!("| {major}.{minor} | `jobq:handler@{CONTRACT}` |")),
        "README.md lacks this version"
    );
}
