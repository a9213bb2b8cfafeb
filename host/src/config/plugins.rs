//! `[plugins]`: where the handlers lie.

use std::path::{Path, PathBuf};

use super::path::path;
use super::section::Section;

/// The keys of `[plugins]`.
pub(super) const KEYS: &[&str] = &["dir", "cache_dir"];

/// Reads `[plugins]`: the directory of the handlers and that of their compiled code.
pub(super) fn read(section: &mut Section<'_, '_>, base: &Path) -> (PathBuf, PathBuf) {
    let (mut dir, mut cache_dir) = (base.join("plugins"), base.join(".jobq/cache"));
    section.fill("dir", &mut dir, |setting| path(setting, "the path of a directory, such as \"plugins\"", base));
    section.fill("cache_dir", &mut cache_dir, |setting| {
        path(setting, "the path of a directory, such as \".jobq/cache\"", base)
    });
    (dir, cache_dir)
}
