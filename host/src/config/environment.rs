//! `JOBQ_SECTION__KEY` variables: each sets one key. Other `JOBQ_*` variables are ignored.

use super::problem::{Findings, Problem};
use super::span::Span;
use super::suggest;
use super::tree::{Shape, Table, from_variable};

/// The variables of a process that begin with `JOBQ_`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        // Invalid UTF-8 becomes U+FFFD, which `overlay` refuses in a setting.
        std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect()
    }

    /// Sets the keys that the variables name, over those of the file. `sections` are the tables that exist.
    pub(super) fn overlay(&self, root: &mut Table, sections: &[&str], findings: &mut Findings) {
        for (name, value) in &self.0 {
            let Some((section, key)) = name["JOBQ_".len()..].split_once("__") else { continue };
            let (name_span, value) = from_variable(name, value);
            match path(root, sections, &section.to_lowercase(), key, &name_span) {
                Ok(Some(_)) if value.span.text().contains('\u{fffd}') => {
                    let problem = Problem::new(format!("`{name}` is not UTF-8")).at(&value.span, "expected UTF-8");
                    findings.problems.push(problem);
                }
                Ok(Some(path)) if root.set(&path, &name_span, value) => {}
                Ok(Some(_)) => findings
                    .problems
                    .push(Problem::new("the variable does not name a key").at(&name_span, "no such setting")),
                Ok(None) => findings.notes.extend(note_typo(name, sections, section, key)),
                Err(problem) => findings.problems.push(problem),
            }
        }
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        let mut ours: Vec<_> = variables.into_iter().filter(|(name, _)| name.starts_with("JOBQ_")).collect();
        ours.sort();
        Self(ours)
    }
}

/// The path of the key that a variable sets; `None` if there is no such section.
fn path(
    root: &Table,
    sections: &[&str],
    section: &str,
    key: &str,
    name: &Span,
) -> Result<Option<Vec<String>>, Problem> {
    if section == "jobs" {
        let (job_type, key) = job_type(root, key, name)?;
        return Ok(Some([vec![section.to_owned(), job_type], inner_path(key)].concat()));
    }
    Ok(sections.contains(&section).then(|| [vec![section.to_owned()], inner_path(key)].concat()))
}

/// `BACKOFF__BASE` is `backoff.base`; the names after `ENV__` and `SECRETS__` keep their case.
fn inner_path(key: &str) -> Vec<String> {
    match key.split_once("__") {
        Some((first, rest)) if first.eq_ignore_ascii_case("env") => vec!["env".to_owned(), rest.to_owned()],
        Some((first, rest)) if first.eq_ignore_ascii_case("secrets") => {
            let (name, key) =
                rest.rsplit_once("__").map_or((rest, None), |(name, key)| (name, Some(key.to_lowercase())));
            [Some("secrets".to_owned()), Some(name.to_owned()), key].into_iter().flatten().collect()
        }
        Some((first, rest)) => vec![first.to_lowercase(), rest.to_lowercase()],
        None => vec![key.to_lowercase()],
    }
}

/// Splits `SEND_EMAIL__TIMEOUT` into the job type, as the file writes it, and the key.
fn job_type<'a>(root: &Table, text: &'a str, name: &Span) -> Result<(String, &'a str), Problem> {
    let types: Vec<&str> = match root.get("jobs").map(|jobs| &jobs.value.shape) {
        Some(Shape::Table(jobs)) => jobs.entries.iter().map(|entry| entry.key.as_str()).collect(),
        _ => Vec::new(),
    };
    let key_of = |job_type: &str| text.get(job_type.len()..)?.strip_prefix("__");
    let meant = |job_type: &&str| {
        key_of(job_type).is_some() && variable_name(&text[..job_type.len()]) == variable_name(job_type)
    };
    let found: Vec<&str> = types.iter().copied().filter(meant).collect();
    let longest = found.iter().map(|job_type| job_type.len()).max();
    match found.iter().filter(|job_type| Some(job_type.len()) == longest).collect::<Vec<_>>()[..] {
        [job_type] => Ok((job_type.to_string(), key_of(job_type).unwrap_or_default())),
        [] => Err(unknown_type(text, &types, name)),
        _ => Err(Problem::new("the variable could mean several job types").at(name, found.join(" or "))),
    }
}

/// How the name of a variable writes a type.
fn variable_name(job_type: &str) -> String {
    job_type.to_uppercase().replace(['-', '.'], "_")
}

fn unknown_type(text: &str, types: &[&str], name: &Span) -> Problem {
    let typed = text.rsplit_once("__").map_or(text, |(job_type, _)| job_type);
    let label = match suggest::closest(typed, types.iter().copied()) {
        Some(near) => format!("did you mean JOBQ_JOBS__{}__...?", variable_name(near)),
        None => "expected JOBQ_JOBS__TYPE__KEY".to_owned(),
    };
    Problem::new("the variable does not name a job type of the file")
        .at(name, label)
        .with_help("a variable can change a type only if the file has a [jobs.NAME] for it")
}

/// A note about a variable that looks like a typo. It may belong to another program, so it is no error.
fn note_typo(name: &str, sections: &[&str], section: &str, key: &str) -> Option<String> {
    let near = suggest::closest(section, sections.iter().copied())?;
    Some(format!("the variable {name} has no effect: did you mean JOBQ_{}__{key}?", near.to_uppercase()))
}
