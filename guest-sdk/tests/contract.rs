//! The copy of the contract that is published with this crate is the contract.

use std::fs;
use std::path::Path;

use jobq_guest::CONTRACT;

const COPY: &str = include_str!("../wit/handler.wit");

#[test]
fn the_copy_is_held_equal() {
    // A published crate lies alone.
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/handler.wit");
    if let Ok(original) = fs::read_to_string(original) {
        assert!(COPY == original, "wit/handler.wit was changed: copy it to guest-sdk/wit/handler.wit");
    }
}

#[test]
fn the_version_is_said_right() {
    assert!(COPY.starts_with(&format!("package jobq:handler@{CONTRACT};")));
    let readme = include_str!("../README.md");
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    assert!(
        readme.contains(&format!("| {major}.{minor} | `jobq:handler@{CONTRACT}` |")),
        "README.md lacks this version"
    );
}
