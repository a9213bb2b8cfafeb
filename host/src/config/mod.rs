//! `jobq.toml` and the variables, checked into the options of the other rooms.
//!
//! Start with [`load`], which gives [`Settings`] or a [`ConfigError`] with every problem at once.
//! The way of a setting: [`Location`] finds the file, `file` holds what is written with its places,
//! [`Environment`] is laid over it, `check` has each section read by the file of its name
//! through `section` (a table) and `setting` (a value).
//! This room opens nothing but the settings file, and for who runs guests the secrets it names
//! ([`Settings::with_secrets`]): whether a directory or a plugin is there, others find out.

mod backoff;
mod check;
mod environment;
mod file;
mod grants;
mod http;
mod jobs;
mod location;
mod path;
mod place;
mod plugins;
mod problem;
mod queue;
mod regular;
mod retention;
mod rule;
mod schema;
mod secrets;
mod section;
mod server;
mod setting;
mod settings;
pub mod suggest;
mod worker;
mod written;

use std::path::Path;

pub use check::{check, keys};
pub use environment::Environment;
pub use location::Location;
pub use problem::{ConfigError, Look, Problem, render};
pub use schema::schema;
pub use secrets::SecretSource;
pub use settings::{Queue, Settings};
pub use written::Written;

/// Reads and checks the settings: defaults < file < environment.
///
/// # Errors
/// When the file cannot be read, or when anything in it, or in the variables is wrong.
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
            settings
                .notes
                .push("no jobq.toml here: the defaults hold, and paths start at the current directory".to_owned());
            Ok(settings)
        }
    }
}
