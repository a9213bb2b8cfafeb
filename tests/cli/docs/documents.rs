//! The Markdown files of the repository, with their code blocks and code spans.

use std::fs;
use std::path::{Path, PathBuf};

/// A Markdown file.
pub(super) struct Document {
    /// Relative to the repository.
    pub(super) path: String,
    pub(super) text: String,
}

pub(super) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What users of jobq read, except for the changelog, which also describes older versions.
pub(super) fn users_documents() -> Vec<Document> {
    all()
        .into_iter()
        .filter(|document| document.path != "CHANGELOG.md" && !document.path.starts_with("tests/"))
        .collect()
}

/// Every Markdown file that is ours.
pub(super) fn all() -> Vec<Document> {
    let mut found = Vec::new();
    for folder in ["", "docs", "guest-sdk", "tests"] {
        found.extend(markdown_in(folder));
    }
    for folder in ["templates", "tests", "plugins"] {
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                found.extend(markdown_in(&format!("{folder}/{}", entry.file_name().display())));
            }
        }
    }
    assert!(found.len() >= 20, "{}", found.len());
    found
}

fn markdown_in(folder: &str) -> Vec<Document> {
    let entries = fs::read_dir(repository().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut paths: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") })
        .collect();
    paths.sort();
    paths.iter().map(|path| Document::read(path)).collect()
}

impl Document {
    pub(super) fn read(path: &str) -> Self {
        let text = fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.into(), text }
    }

    /// The fenced code blocks in a language.
    pub(super) fn blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = Vec::new();
        let mut open: Option<(bool, String)> = None;
        for line in self.text.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(info)) => open = Some((info == language, String::new())),
                (Some(_), Some(_)) => blocks.extend(open.take().filter(|(wanted, _)| *wanted).map(|(_, text)| text)),
                (Some((_, text)), None) => *text += &format!("{line}\n"),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a code block isn't closed", self.path);
        blocks
    }

    /// The text outside of code blocks and comments.
    pub(super) fn prose(&self) -> String {
        let parts = self.text.split("\n```").step_by(2);
        let prose = parts.collect::<Vec<_>>().join("\n");
        prose.split("<!--").map(|part| part.split_once("-->").map_or(part, |(_, rest)| rest)).collect()
    }

    /// The code spans of the prose. In a table, a pipe is written as `\|`.
    pub(super) fn code_spans(&self) -> Vec<String> {
        let prose = self.prose();
        let spans = prose.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        spans.map(|span| span.replace("\\|", "|")).collect()
    }
}
