//! The settings: goldens of accepted and refused files, precedence, the file that ships, and no panic on any text.

#![allow(clippy::unwrap_used, reason = "a test reports a failure by its panic")]

mod document;
mod goldens;
mod layers;
mod location;
mod properties;
mod reload;
mod rendering;
mod schema;
mod secrets;

use std::path::Path;

use jobq::config::{ConfigError, Environment, Settings, check};

/// Checks `text` as `conf/jobq.toml` with these variables.
fn check_text(text: &str, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    check(text, "jobq.toml", Path::new("conf"), &environment(variables))
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
