//! `[jobs.NAME]`: the rule, the plugin and the grants of one job type.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::file::{Entry, Value};
use super::grants;
use super::problem::{Findings, Problem, shown};
use super::rule;
use super::secrets::{self, SecretSource};
use super::section::Section;
use super::setting::Setting;
use super::worker::positive;
use crate::plugins::Source;
use crate::queue::JobType;
use crate::worker::JobTypeOptions;

/// The keys that `[jobs.NAME]` has beside those of `[defaults]`.
pub(super) const KEYS: &[&str] = &["plugin", "concurrency", "env", "secrets", "dirs", "http", "enqueue"];

/// The job types that the settings name.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) rules: BTreeMap<JobType, Arc<JobTypeOptions>>,
    pub(super) sources: BTreeMap<String, Source>,
    pub(super) secrets: Vec<SecretSource>,
}

/// Reads `[jobs]`; what a type does not say is as in `default`.
pub(super) fn read(jobs: Option<&Value>, default: &JobTypeOptions, base: &Path, findings: &mut Findings) -> Jobs {
    let mut read = Jobs::default();
    let Some(value) = jobs else { return read };
    let table =
        Setting { path: "jobs".to_owned(), value }.table("tables: [jobs.NAME], and the keys of that type below");
    let Ok(table) = table.map_err(|problem| findings.problems.push(problem)) else { return read };
    for entry in &table.entries {
        let Ok(job_type) = JobType::parse(&entry.key) else {
            findings.problems.push(bad_name(entry));
            continue;
        };
        let (rule, source, secrets) = job(entry, &job_type, default, base, findings);
        read.secrets.extend(secrets);
        read.rules.insert(job_type, Arc::new(rule));
        read.sources.insert(entry.key.clone(), source);
    }
    read
}

fn bad_name(entry: &Entry) -> Problem {
    Problem::new(format!("`{}` cannot be a job type", shown(&entry.key))).at(&entry.key_place, JobType::EXPECTED)
}

fn job(
    entry: &Entry,
    job_type: &JobType,
    default: &JobTypeOptions,
    base: &Path,
    findings: &mut Findings,
) -> (JobTypeOptions, Source, Vec<SecretSource>) {
    let keys = [KEYS, rule::KEYS].concat();
    let mut section = Section::open(path(&entry.key), Some(&entry.value), keys, findings);
    let mut rule = rule::read(&mut section, default);
    rule.concurrency = section.get("concurrency", |setting| {
        let number = positive(setting, "a number of attempts");
        number.map_err(|problem| problem.cure("without this key only worker.concurrency limits the type"))
    });
    rule.grants = grants::read(&mut section, base);
    let taken = |name: &str| rule.grants.env.contains_key(name);
    let secrets = section
        .setting("secrets")
        .map(|setting| secrets::read(&setting, job_type, base, taken, section.findings))
        .unwrap_or_default();
    let file = section.get("plugin", plugin).unwrap_or_else(|| format!("{}.wasm", entry.key));
    let metering = rule.limits.metering();
    (rule, Source { file, metering }, secrets)
}

/// How messages write the table of a type.
fn path(name: &str) -> String {
    if name.contains('.') { format!("jobs.\"{name}\"") } else { format!("jobs.{name}") }
}

fn plugin(setting: &Setting<'_>) -> Result<String, Problem> {
    let expected = "a file name such as \"send_email.wasm\"";
    let file = setting.text(expected)?;
    let expected = format!("expected {expected}");
    if file.contains(['/', '\\']) {
        let problem = setting.problem("is a path", expected);
        return Err(problem.cure("plugins lie in plugins.dir itself: write the file name alone"));
    }
    if file.chars().any(char::is_control) || file.strip_suffix(".wasm").is_none_or(str::is_empty) {
        return Err(setting.problem("is not the name of a .wasm file", expected));
    }
    Ok(file.to_owned())
}
