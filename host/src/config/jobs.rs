//! `[jobs.NAME]`: the limits, the plugin and the grants of one job type.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::defaults;
use super::grants;
use super::kind::{Kind, concurrency};
use super::problem::{Findings, Problem, shown};
use super::secrets::{self, SecretSource};
use super::section::{DeclaredKey, Section};
use super::setting::Setting;
use super::tree::{Entry, Value};
use crate::plugins::Source;
use crate::queue::JobType;
use crate::worker::JobTypeOptions;

/// The job types that the settings name.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) by_type: BTreeMap<JobType, Arc<JobTypeOptions>>,
    pub(super) sources: BTreeMap<String, Source>,
    pub(super) secrets: Vec<SecretSource>,
    /// The keys that each of them may have; none if there is no type.
    pub(super) keys: Vec<DeclaredKey>,
}

/// Reads `[jobs]`; a key that a type does not have keeps its value of `default`.
pub(super) fn read(jobs: Option<&Value>, default: &JobTypeOptions, base: &Path, findings: &mut Findings) -> Jobs {
    let mut read = Jobs::default();
    let Some(value) = jobs else { return read };
    let setting = Setting { path: "jobs".to_owned(), value };
    let table = findings.take(setting.table("tables: [jobs.NAME], and the keys of that type below"));
    for entry in table.into_iter().flat_map(|table| &table.entries) {
        match JobType::parse(&entry.key) {
            Ok(job_type) => read.add(entry, job_type, default, base, findings),
            Err(_) => findings.problems.push(bad_name(entry)),
        }
    }
    read
}

impl Jobs {
    fn add(
        &mut self,
        entry: &Entry,
        job_type: JobType,
        default: &JobTypeOptions,
        base: &Path,
        findings: &mut Findings,
    ) {
        let mut section = Section::open(path(&entry.key), Some(&entry.value), findings);
        let file = section.optional("plugin", plugin()).unwrap_or_else(|| format!("{}.wasm", entry.key));
        let slots =
            concurrency("a number of attempts").help("without this key only worker.concurrency limits the type");
        let concurrency = section.optional("concurrency", slots);
        let grants = grants::read(&mut section, base);
        let secrets = section.optional("secrets", secrets::kind(&job_type, base, &grants.env));
        let options = JobTypeOptions { concurrency, grants, ..defaults::read(&mut section, default) };
        self.keys = section.close();
        self.secrets.extend(secrets.unwrap_or_default());
        self.sources.insert(entry.key.clone(), Source { file, metering: options.limits.metering() });
        self.by_type.insert(job_type, Arc::new(options));
    }
}

fn bad_name(entry: &Entry) -> Problem {
    Problem::new(format!("`{}` cannot be a job type", shown(&entry.key))).at(&entry.key_span, JobType::EXPECTED)
}

/// How messages write the table of a type.
fn path(name: &str) -> String {
    if name.contains('.') { format!("jobs.\"{name}\"") } else { format!("jobs.{name}") }
}

/// A file name in the plugin directory.
fn plugin<'k>() -> Kind<'k, String> {
    Kind::new(json!({ "type": "string", "pattern": r"^[^/\\]+\.wasm$" }), |setting| {
        let expected = "a file name such as \"send_email.wasm\"";
        let file = setting.text(expected)?;
        let expected = format!("expected {expected}");
        if file.contains(['/', '\\']) {
            let problem = setting.problem("is a path", expected);
            return Err(problem.with_help("plugins are in plugins.dir itself: write only the file name"));
        }
        if file.chars().any(char::is_control) || file.strip_suffix(".wasm").is_none_or(str::is_empty) {
            return Err(setting.problem("is not the name of a .wasm file", expected));
        }
        Ok(file.to_owned())
    })
}
