//! The templates in the binary: the list of them, and the files of each for a plugin with a given name.

/// Every embedded file: its path from the root of the repository, and its content. `build.rs` generates the list.
static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The placeholder for the name of the plugin.
const NAME: &str = "__name__";

/// The placeholder for the name as an identifier.
const IDENTIFIER: &str = "__ident__";

/// The suffix of the directory of a program template.
const PROGRAM: &str = "-program";

/// A file of a new plugin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TemplateFile {
    /// Its path in the plugin's directory.
    pub(super) path: String,
    pub(super) content: Vec<u8>,
    /// Whether it is a script.
    pub(super) executable: bool,
}

/// The languages that have a template of either kind.
pub(super) fn languages() -> Vec<&'static str> {
    let mut languages: Vec<_> = templates().iter().map(|name| name.strip_suffix(PROGRAM).unwrap_or(name)).collect();
    languages.sort_unstable();
    languages.dedup();
    languages
}

/// The languages that have a template of this kind.
pub(super) fn languages_with(program: bool) -> Vec<&'static str> {
    let of_kind = |language: &&str| templates().contains(&directory(language, program).as_str());
    languages().into_iter().filter(of_kind).collect()
}

fn templates() -> Vec<&'static str> {
    let mut names: Vec<_> = EMBEDDED
        .iter()
        .filter_map(|(path, _)| path.strip_prefix("templates/")?.split_once('/').map(|(name, _)| name))
        .collect();
    names.dedup();
    names
}

fn directory(language: &str, program: bool) -> String {
    format!("{language}{}", if program { PROGRAM } else { "" })
}

/// The files of a new plugin.
pub(super) fn files(language: &str, program: bool, name: &str) -> Vec<TemplateFile> {
    let template = format!("templates/{}/", directory(language, program));
    let mut files: Vec<TemplateFile> = below(&template).map(|(path, content)| render(path, content, name)).collect();
    if !program {
        files.extend(below("wit/").map(|(path, content)| verbatim(&format!("wit/{path}"), content)));
        if language == "rust" {
            files.extend(below("guest-sdk/").map(|(path, content)| verbatim(&format!("jobq-guest/{path}"), content)));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|later, earlier| later.path == earlier.path);
    files
}

fn below(dir: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    EMBEDDED.iter().filter_map(move |(path, content)| path.strip_prefix(dir).map(|path| (path, *content)))
}

fn verbatim(path: &str, content: &[u8]) -> TemplateFile {
    TemplateFile { path: path.to_owned(), content: content.to_vec(), executable: content.starts_with(b"#!") }
}

fn render(path: &str, content: &[u8], name: &str) -> TemplateFile {
    let identifier = identifier(name);
    let fill = |text: &str| text.replace(NAME, name).replace(IDENTIFIER, &identifier);
    let content = match std::str::from_utf8(content) {
        Ok(text) => fill(text).into_bytes(),
        Err(_) => content.to_vec(),
    };
    verbatim(&file_name(&fill(path)), &content)
}

/// The final path. Templates use `gitignore` and `X.in` so that the tools of this repository ignore these files.
fn file_name(path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
    let name = match name {
        "gitignore" => ".gitignore",
        name => name.strip_suffix(".in").unwrap_or(name),
    };
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// The name as an identifier that is valid in most languages.
pub(super) fn identifier(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let identifier: String = name.chars().map(valid).collect();
    if identifier.starts_with(|c: char| c.is_ascii_digit()) { format!("_{identifier}") } else { identifier }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        for (name, expected) in [("resize", "resize"), ("Send-E.mail", "send_e_mail"), ("2nd", "_2nd"), ("_x", "_x")] {
            assert_eq!(identifier(name), expected);
        }
    }

    #[test]
    fn placeholders_are_replaced_in_paths_and_text_only() {
        let file = render("src/__ident__/gitignore", b"__name__ is __ident__", "a-b");
        assert_eq!((file.path.as_str(), file.content.as_slice()), ("src/a_b/.gitignore", &b"a-b is a_b"[..]));
        let file = render("Cargo.toml.in", b"\xff__name__", "a-b");
        assert_eq!((file.path.as_str(), file.content.as_slice()), ("Cargo.toml", &b"\xff__name__"[..]));
        assert!(render("build.sh", b"#!/bin/sh\n", "a").executable && !file.executable);
    }

    #[test]
    fn every_template_has_a_readme_and_leaves_no_placeholder() {
        for program in [false, true] {
            for language in languages_with(program) {
                let files = files(language, program, "some-plugin");
                assert!(files.iter().any(|file| file.path == "README.md"), "{language}");
                assert_eq!(files.iter().any(|file| file.path == "wit/handler.wit"), !program, "{language}");
                for file in &files {
                    let open = [NAME, IDENTIFIER].map(|mark| String::from_utf8_lossy(&file.content).contains(mark));
                    assert_eq!(open, [false, false], "{language}: {}", file.path);
                }
            }
        }
    }

    #[test]
    fn the_sdk_in_rust_plugins_is_complete() {
        let sdk: Vec<_> = below("guest-sdk/").map(|(path, _)| path).collect();
        for file in ["Cargo.toml", "README.md", "src/lib.rs", "wit/handler.wit"] {
            assert!(sdk.contains(&file), "{file} is missing in {sdk:?}");
        }
    }
}
