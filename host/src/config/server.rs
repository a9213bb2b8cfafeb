//! `[server]`: room for what a later version serves over HTTP.

use super::section::Section;

/// The keys of `[server]`.
pub(super) const KEYS: &[&str] = &["listen"];

/// Reads `[server]`. Anything but "off" would be a setting that does nothing, so it is refused.
pub(super) fn read(section: &mut Section<'_, '_>) {
    section.get("listen", |setting| {
        setting.word(&[("off", ())]).map_err(|problem| problem.cure("this version does not serve HTTP"))
    });
}
