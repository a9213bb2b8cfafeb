//! `jobq.toml` and the variables, checked into the options of the other modules.
//!
//! Start with [`load`], which returns [`Settings`], or a [`ConfigError`] with every problem at once.
//! [`Location`] finds the file, `tree` parses it into values with locations, [`Environment`] is laid over it, and `check` reads
//! each table. `tables`, `defaults`, `jobs` and `grants` declare the keys: each name with a `kind`, which reads the value and describes
//! it for the JSON Schema, and the option that it sets. To add a key, declare it there and document it in `jobq.toml`.
//!
//! This module opens only the settings file and, for commands that run guests, the secrets that it names
//! ([`Settings::with_secrets`]). Whether a directory or a plugin exists is checked elsewhere.

mod check;
mod defaults;
mod environment;
mod grants;
mod jobs;
mod kind;
mod location;
mod problem;
mod regular_file;
mod schema;
mod secrets;
mod section;
mod setting;
mod settings;
mod span;
pub mod suggest;
mod tables;
mod tree;
mod written;

use std::path::Path;

pub use check::check;
pub use environment::Environment;
pub use location::Location;
pub use problem::{ConfigError, Look, Problem, render};
pub use schema::{keys, schema};
pub use secrets::SecretSource;
pub use settings::{Queue, Settings};
pub use written::Written;

/// Reads and checks the settings: defaults < file < environment.
///
/// # Errors
/// When the file cannot be read, or when the file or a variable is wrong.
pub fn load(location: &Location, environment: &Environment) -> Result<Settings, ConfigError> {
    let read = location.read().map_err(|problem| ConfigError::new(vec![problem]))?;
    match read {
        Some(found) => {
            let name = found.path.display().to_string();
            let settings = check(&found.text, &name, found.base(), environment)?;
            Ok(Settings { file: Some(found.path), ..settings })
        }
        None => {
            let mut settings = check("", "jobq.toml", Path::new(""), environment)?;
            let note = "there is no jobq.toml here: the defaults apply, and paths start at the current directory";
            settings.notes.push(note.to_owned());
            Ok(settings)
        }
    }
}
