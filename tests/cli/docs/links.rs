//! Relative links in Markdown, and the anchors they point to.

use std::fs;
use std::path::Path;

use super::documents::{Document, repository};

/// The links of a document whose file or heading doesn't exist.
pub(super) fn broken(document: &Document) -> Vec<String> {
    let folder = repository().join(Path::new(&document.path).parent().unwrap());
    let prose = document.prose();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let relative = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let is_broken = |target: &&str| {
        let (path, anchor) = target.split_once('#').map_or((*target, None), |(path, anchor)| (path, Some(anchor)));
        let file = if path.is_empty() { repository().join(&document.path) } else { folder.join(path) };
        match anchor {
            None => !file.exists(),
            Some(anchor) => fs::read_to_string(file).map_or(true, |text| !anchors(&text).contains(&anchor.to_owned())),
        }
    };
    relative.filter(is_broken).map(|target| format!("{}: {target}", document.path)).collect()
}

/// The anchors of the headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}
