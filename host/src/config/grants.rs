//! What one job type is granted: environment, directories, requests, follow-up types. Everything else is denied.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::kind::{self, Kind, boolean, job_type, list};
use super::problem::{Problem, shown};
use super::section::{self, Section};
use super::setting::Setting;
use crate::sandbox::{DirGrant, Grants, HttpGrant};

/// Reads the grants of a `[jobs.NAME]`.
pub(super) fn read(section: &mut Section<'_, '_>, base: &Path) -> Grants {
    let mut grants = Grants::default();
    section.key("env", env(), &mut grants.env);
    section.key("dirs", dirs(base), &mut grants.dirs);
    section.key("http", list("a list such as [\"https://api.example.com\"]", http_origin()), &mut grants.http);
    let follow_ups = list("a list of job types", job_type());
    let names = follow_ups.map(|types| types.iter().map(ToString::to_string).collect());
    section.key("enqueue", names, &mut grants.enqueue);
    grants
}

fn env<'k>() -> Kind<'k, BTreeMap<String, String>> {
    let schema = json!({
        "type": "object",
        "propertyNames": { "pattern": "^(?!JOBQ_)[^=]+$" },
        "additionalProperties": { "type": "string" },
    });
    Kind::with_findings(schema, |setting, findings| {
        let table = findings.take(setting.table("a table such as { NAME = \"value\" }"))?;
        let mut variables = BTreeMap::new();
        for entry in &table.entries {
            if let Err(what) = check_variable_name(&entry.key) {
                let message = format!("`{}` of `{}` {what}", shown(&entry.key), setting.path);
                findings.problems.push(Problem::new(message).at(&entry.key_span, "expected a name such as API_KEY"));
            }
            let path = format!("{}.{}", setting.path, shown(&entry.key));
            let value = findings.take(variable_value(&Setting { path, value: &entry.value }));
            variables.extend(value.map(|value| (entry.key.clone(), value)));
        }
        Some(variables)
    })
}

fn check_variable_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("is not a variable name");
    }
    if name.starts_with("JOBQ_") {
        return Err("is reserved: jobq sets JOBQ_ variables itself");
    }
    Ok(())
}

fn variable_value(setting: &Setting<'_>) -> Result<String, Problem> {
    let text = setting.text("a string").map_err(|problem| problem.with_help("every variable is text: quote it"))?;
    if text.contains('\0') {
        return Err(setting.problem("contains a NUL", "expected text without NUL"));
    }
    Ok(text.to_owned())
}

fn dirs(base: &Path) -> Kind<'_, Vec<DirGrant>> {
    let one = dir(base);
    Kind::with_findings(json!({ "type": "array", "items": one.schema() }), move |setting, findings| {
        let items = findings.take(setting.list("a list such as [{ host = \"data\", guest = \"/data\" }]"))?;
        let (mut grants, mut guests) = (Vec::new(), BTreeSet::new());
        for value in &items {
            let setting = Setting { path: setting.path.clone(), value };
            let Some(grant) = one.read(&setting, findings) else { continue };
            if !guests.insert(grant.guest.clone()) {
                let problem = setting.problem(&format!("grants `{}` twice", shown(&grant.guest)), "granted again here");
                let help = "the guest could see only one of the directories there: choose another name";
                findings.problems.push(problem.with_help(help));
            }
            grants.push(grant);
        }
        Some(grants)
    })
}

/// A [`DirGrant`] that is not complete yet.
#[derive(Default)]
struct Dir {
    host: Option<PathBuf>,
    guest: Option<String>,
    write: bool,
}

fn dir(base: &Path) -> Kind<'_, DirGrant> {
    let dir = section::table(move |section, dir: &mut Dir| {
        dir.host = section.optional("host", kind::path("the path of a directory", base).doc("The directory here."));
        dir.guest = section.optional("guest", guest_path().doc("Where the handler sees it."));
        section.key("write", boolean().doc("Whether the handler may write there."), &mut dir.write);
    });
    let mut schema = dir.schema().clone();
    schema["required"] = json!(["host", "guest"]);
    Kind::with_findings(schema, move |setting, findings| {
        let table = findings.take(setting.table("a table such as { host = \"data\", guest = \"/data\" }"))?;
        for key in ["host", "guest"].into_iter().filter(|key| table.get(key).is_none()) {
            findings.problems.push(setting.problem(&format!("has no `{key}`"), format!("expected {key} = \"...\"")));
        }
        let Dir { host, guest, write } = dir.read(setting, findings)?;
        Some(DirGrant { host: host?, guest: guest?, write })
    })
}

/// Where the guest sees a directory: an absolute path without `.` and `..`, so that equal paths are written alike.
fn guest_path<'k>() -> Kind<'k, String> {
    Kind::new(json!({ "type": "string", "pattern": "^/" }), |setting| {
        let expected = "an absolute path such as \"/data\"";
        let text = setting.text(expected)?;
        let problem = |what: &str| setting.problem(what, format!("expected {expected}"));
        let Some(inside) = text.strip_prefix('/') else {
            return Err(problem("is not an absolute path"));
        };
        let inside = inside.strip_suffix('/').unwrap_or(inside);
        if text.contains(['\0', '\\'])
            || (!inside.is_empty() && inside.split('/').any(|part| matches!(part, "" | "." | "..")))
        {
            return Err(problem("is not a plain path"));
        }
        Ok(format!("/{inside}"))
    })
}

/// An origin that the type may send requests to: `scheme://host[:port]`, with `*.` allowed in front of the host.
fn http_origin<'k>() -> Kind<'k, HttpGrant> {
    Kind::new(json!({ "type": "string", "pattern": "^https?://[^/?#@]+$" }), |setting| {
        let text = setting.text("a string such as \"https://api.example.com\"")?;
        HttpGrant::parse(text).map_err(|error| {
            let what = format!("names `{}`, which is not an origin", shown(text));
            let expected = "expected scheme://host[:port], \"*.\" allowed in front of the host";
            setting.problem(&what, expected).with_help(error.to_string())
        })
    })
}
