//! What one job type is granted: environment, directories, requests, follow-up types. All else is denied.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::http;
use super::path::path;
use super::problem::{Findings, Problem, shown};
use super::section::Section;
use super::setting::Setting;
use super::worker::job_types;
use crate::sandbox::{DirGrant, Grants};

/// The keys of one directory.
pub(super) const DIR_KEYS: &[&str] = &["host", "guest", "write"];

/// Reads the grants of a `[jobs.NAME]`.
pub(super) fn read(section: &mut Section<'_, '_>, base: &Path) -> Grants {
    let mut grants = Grants::default();
    if let Some(setting) = section.setting("env") {
        grants.env = env(&setting, section.findings);
    }
    if let Some(setting) = section.setting("dirs") {
        grants.dirs = dirs(&setting, base, section.findings);
    }
    if let Some(setting) = section.setting("http") {
        grants.http = http::read(&setting, section.findings);
    }
    if let Some(setting) = section.setting("enqueue") {
        let types = job_types(&setting, "a list of job types", section).unwrap_or_default();
        grants.enqueue = types.iter().map(ToString::to_string).collect();
    }
    grants
}

fn env(setting: &Setting<'_>, findings: &mut Findings) -> BTreeMap<String, String> {
    let table =
        setting.table("a table such as { NAME = \"value\" }").map_err(|problem| findings.problems.push(problem));
    let mut variables = BTreeMap::new();
    for entry in table.into_iter().flat_map(|table| &table.entries) {
        if let Err(what) = variable_name(&entry.key) {
            let message = format!("`{}` of `{}` {what}", shown(&entry.key), setting.path);
            findings.problems.push(Problem::new(message).at(&entry.key_place, "expected a name such as API_KEY"));
        }
        let value = Setting { path: format!("{}.{}", setting.path, entry.key), value: &entry.value };
        match value.text("a string") {
            Ok(text) if text.contains('\0') => {
                findings.problems.push(value.problem("holds a NUL", "expected text without NUL"));
            }
            Ok(text) => _ = variables.insert(entry.key.clone(), text.to_owned()),
            Err(problem) => findings.problems.push(problem.cure("every variable is text: put it into quotes")),
        }
    }
    variables
}

fn variable_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("is not the name of a variable");
    }
    if name.starts_with("JOBQ_") {
        return Err("is reserved: jobq sets JOBQ_ variables itself");
    }
    Ok(())
}

fn dirs(setting: &Setting<'_>, base: &Path, findings: &mut Findings) -> Vec<DirGrant> {
    let expected = "a list such as [{ host = \"data\", guest = \"/data\" }]";
    let items = setting.list(expected).map_err(|problem| findings.problems.push(problem)).unwrap_or_default();
    let (mut grants, mut guests) = (Vec::new(), BTreeSet::new());
    for value in &items {
        let setting = Setting { path: setting.path.clone(), value };
        let Some(grant) = dir(&setting, base, findings) else { continue };
        if !guests.insert(grant.guest.clone()) {
            let problem = setting.problem(&format!("grants `{}` twice", shown(&grant.guest)), "the second one");
            findings.problems.push(problem.cure("the guest could see only one of them there: choose another name"));
        }
        grants.push(grant);
    }
    grants
}

fn dir(setting: &Setting<'_>, base: &Path, findings: &mut Findings) -> Option<DirGrant> {
    let table = setting.table("a table such as { host = \"data\", guest = \"/data\" }");
    let table = table.map_err(|problem| findings.problems.push(problem)).ok()?;
    for key in ["host", "guest"].into_iter().filter(|key| table.get(key).is_none()) {
        findings.problems.push(setting.problem(&format!("has no `{key}`"), format!("expected {key} = \"...\"")));
    }
    let mut section = Section::open(setting.path.clone(), Some(setting.value), DIR_KEYS.to_vec(), findings);
    let host = section.get("host", |setting| path(setting, "the path of a directory", base));
    let guest = section.get("guest", guest_path);
    let write = section.get("write", Setting::boolean).unwrap_or(false);
    Some(DirGrant { host: host?, guest: guest?, write })
}

/// Where the guest sees a directory: absolute and without detours, so that two names are the same only if they are written alike.
fn guest_path(setting: &Setting<'_>) -> Result<String, Problem> {
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
}
