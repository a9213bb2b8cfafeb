//! `JOBQ_SECTION__KEY` variables: each stands for one key. Any other `JOBQ_*` variable is none of ours.

use super::check::SECTIONS;
use super::file::{Shape, Table, from_shell};
use super::place::Place;
use super::problem::{Findings, Problem};
use super::suggest;

/// The variables of a process, as far as they begin with `JOBQ_`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        // What is not UTF-8 becomes U+FFFD, which `overlay` refuses where it would be a setting.
        std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect()
    }

    /// Lays the variables over what the file says.
    pub(super) fn overlay(&self, root: &mut Table, findings: &mut Findings) {
        for (name, value) in &self.0 {
            let Some((section, key)) = name["JOBQ_".len()..].split_once("__") else { continue };
            let (name_place, value) = from_shell(name, value);
            match path(root, &section.to_lowercase(), key, &name_place) {
                Ok(Some(_)) if value.place.text().contains('\u{fffd}') => {
                    let problem = Problem::new(format!("`{name}` is not UTF-8")).at(&value.place, "expected UTF-8");
                    findings.problems.push(problem);
                }
                Ok(Some(path)) if root.set(&path, &name_place, value) => {}
                Ok(Some(_)) => {
                    findings.problems.push(Problem::new("the variable names no key").at(&name_place, "no such setting"))
                }
                Ok(None) => findings.notes.extend(note_slip(name, section, key)),
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

/// The place in the tree that a variable stands for; `None` where its section is none of ours.
fn path(root: &Table, section: &str, key: &str, name: &Place) -> Result<Option<Vec<String>>, Problem> {
    if section == "jobs" {
        let (job_type, key) = job_type(root, key, name)?;
        return Ok(Some([vec![section.to_owned(), job_type], inner_path(key)].concat()));
    }
    let known = SECTIONS.iter().any(|(known, _)| *known == section);
    Ok(known.then(|| [vec![section.to_owned()], inner_path(key)].concat()))
}

/// `BACKOFF__BASE` is `backoff.base`; the names of `ENV__` and `SECRETS__` are kept as they are.
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

/// Splits `SEND_EMAIL__TIMEOUT` into the type of the file that is meant, and the key.
fn job_type<'a>(root: &Table, text: &'a str, name: &Place) -> Result<(String, &'a str), Problem> {
    let types: Vec<&str> = match root.get("jobs").map(|jobs| &jobs.value.shape) {
        Some(Shape::Table(jobs)) => jobs.entries.iter().map(|entry| entry.key.as_str()).collect(),
        _ => Vec::new(),
    };
    let key_of = |job_type: &str| text.get(job_type.len()..)?.strip_prefix("__");
    let meant =
        |job_type: &&str| key_of(job_type).is_some() && shell_name(&text[..job_type.len()]) == shell_name(job_type);
    let found: Vec<&str> = types.iter().copied().filter(meant).collect();
    let longest = found.iter().map(|job_type| job_type.len()).max();
    match found.iter().filter(|job_type| Some(job_type.len()) == longest).collect::<Vec<_>>()[..] {
        [job_type] => Ok((job_type.to_string(), key_of(job_type).unwrap_or_default())),
        [] => Err(unknown_type(text, &types, name)),
        _ => Err(Problem::new("the variable could mean several job types").at(name, found.join(" or "))),
    }
}

/// How a type is written in the name of a variable.
fn shell_name(job_type: &str) -> String {
    job_type.to_uppercase().replace(['-', '.'], "_")
}

fn unknown_type(text: &str, types: &[&str], name: &Place) -> Problem {
    let typed = text.rsplit_once("__").map_or(text, |(job_type, _)| job_type);
    let label = match suggest::closest(typed, types.iter().copied()) {
        Some(near) => format!("did you mean JOBQ_JOBS__{}__...?", shell_name(near)),
        None => "expected JOBQ_JOBS__TYPE__KEY".to_owned(),
    };
    Problem::new("the variable names no job type of the file")
        .at(name, label)
        .cure("a variable can change only what a [jobs.NAME] of the file names")
}

/// A variable that looks like a slip is worth a word, although it may belong to somebody else.
fn note_slip(name: &str, section: &str, key: &str) -> Option<String> {
    let near = suggest::closest(section, SECTIONS.iter().map(|(known, _)| *known))?;
    Some(format!("the variable {name} sets nothing: did you mean JOBQ_{}__{key}?", near.to_uppercase()))
}
