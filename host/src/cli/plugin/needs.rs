//! What a plugin imports, held against what its type is granted.

use serde::Serialize;

use crate::config::Settings;
use crate::sandbox::{Grants, Interface, Plugin};

/// Whether a type may use an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "by")]
pub(in crate::cli) enum Access {
    /// Every type may.
    Free,
    /// The settings grant it, as far as this says.
    Granted(String),
    /// They do not; this line under `[jobs.NAME]` would.
    Missing(String),
    /// No setting can.
    Denied(String),
}

/// An interface that a plugin imports.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct Need {
    pub(in crate::cli) interface: String,
    pub(in crate::cli) functions: Vec<String>,
    pub(in crate::cli) access: Access,
}

/// Everything a plugin of `job_type` imports, in its own order.
pub(in crate::cli) fn needs(plugin: &Plugin, job_type: &str, settings: &Settings) -> Vec<Need> {
    let grants = &settings.worker.job_types.of(job_type).grants;
    let need = |Interface { name, functions }| {
        let access = match bare(&name) {
            "wasi:cli/environment" => {
                let names = grants.env.keys().map(String::as_str).chain(settings.secret_names(job_type));
                by_names(names, "env = { NAME = \"value\" }")
            }
            _ => access(&name, grants),
        };
        Need { interface: name, functions, access }
    };
    plugin.interfaces().into_iter().map(need).collect()
}

/// Something that is missing, in a few words: the import, and the line that would grant it or why nothing does.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Missing {
    pub(in crate::cli) text: String,
    /// Whether standard libraries import it on their own, so that the handler hardly misses it.
    pub(in crate::cli) is_unasked: bool,
}

/// What is missing, each once for all interfaces that the same line would grant.
pub(in crate::cli) fn missing(needs: &[Need]) -> Vec<Missing> {
    let mut missing: Vec<Missing> = Vec::new();
    for need in needs {
        let name = bare(&need.interface);
        let package = name.split('/').next().unwrap_or(name);
        let cure = match &need.access {
            Access::Free | Access::Granted(_) => continue,
            Access::Missing(line) => line,
            Access::Denied(reason) => reason,
        };
        // Of these packages single interfaces are granted, of the others all or nothing.
        let what = if matches!(package, "jobq:handler" | "wasi:cli") { name } else { package };
        let is_unasked = !matches!(package, "jobq:handler" | "wasi:http");
        let found = Missing { text: format!("{what} ({cure})"), is_unasked };
        if !missing.contains(&found) {
            missing.push(found);
        }
    }
    missing
}

/// A name without its version.
fn bare(interface: &str) -> &str {
    interface.split('@').next().unwrap_or(interface)
}

fn access(interface: &str, grants: &Grants) -> Access {
    match bare(interface) {
        "jobq:handler/queue" => by_names(grants.enqueue.iter().map(String::as_str), "enqueue = [\"other_type\"]"),
        name if name.starts_with("wasi:filesystem/") => {
            let dirs = grants.dirs.iter().map(|dir| dir.guest.as_str());
            by_names(dirs, "dirs = [{ host = \"data\", guest = \"/data\" }]")
        }
        "wasi:http/outgoing-handler" | "wasi:http/types" => {
            let origins: Vec<_> = grants.http.iter().map(ToString::to_string).collect();
            by_names(origins.iter().map(String::as_str), "http = [\"https://api.example.com\"]")
        }
        name if name.starts_with("wasi:sockets/") => Access::Denied("sockets are never granted".to_owned()),
        _ => Access::Free,
    }
}

/// Granted as far as `names` go; not at all where there are none.
fn by_names<'a>(names: impl Iterator<Item = &'a str>, line: &str) -> Access {
    let names: Vec<_> = names.collect();
    if names.is_empty() { Access::Missing(line.to_owned()) } else { Access::Granted(names.join(", ")) }
}
