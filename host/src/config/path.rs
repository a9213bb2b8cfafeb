//! Paths: relative ones start at the settings file.

use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::setting::Setting;

/// A path that is not empty; `base` is the directory of the settings file.
pub(super) fn path(setting: &Setting<'_>, expected: &str, base: &Path) -> Result<PathBuf, Problem> {
    let text = setting.text(expected)?;
    if text.is_empty() || text.contains('\0') {
        return Err(setting.problem("is not a path", format!("expected {expected}")));
    }
    if text == "~" || text.starts_with("~/") {
        let problem = setting.problem("begins with ~", format!("expected {expected}"));
        return Err(problem.cure("~ means something to a shell only: write the directory out"));
    }
    Ok(base.join(text))
}
