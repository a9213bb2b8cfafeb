//! `http`: the origins that a type may send requests to, `scheme://host[:port]` with `*.` allowed in front of the host.

use super::problem::{Findings, Problem, shown};
use super::setting::Setting;
use crate::sandbox::HttpGrant;

/// Reads the list.
pub(super) fn read(setting: &Setting<'_>, findings: &mut Findings) -> Vec<HttpGrant> {
    let expected = "a list such as [\"https://api.example.com\"]";
    let items = setting.list(expected).map_err(|problem| findings.problems.push(problem)).unwrap_or_default();
    let mut grants = Vec::new();
    for value in &items {
        match grant(&Setting { path: setting.path.clone(), value }) {
            Ok(grant) => grants.push(grant),
            Err(problem) => findings.problems.push(problem),
        }
    }
    grants
}

fn grant(setting: &Setting<'_>) -> Result<HttpGrant, Problem> {
    let text = setting.text("a string such as \"https://api.example.com\"")?;
    HttpGrant::parse(text).map_err(|error| {
        let what = format!("names `{}`, which is no origin", shown(text));
        setting
            .problem(&what, "expected scheme://host[:port], \"*.\" allowed in front of the host")
            .cure(error.to_string())
    })
}
