//! The templates in the binary: which there are, and the files of each for a plugin of a given name.

/// Every file that is embedded: its path from the root of the repository, and its content. `build.rs` writes the list.
static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What stands for the name of the plugin.
const NAME: &str = "__name__";

/// What stands for the name as an identifier.
const IDENTIFIER: &str = "__ident__";

/// What the directory of a program's template ends in.
const PROGRAM: &str = "-program";

/// A file of a new plugin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// Its path in the directory of the plugin.
    pub(super) path: String,
    pub(super) content: Vec<u8>,
    /// Whether it is a script.
    pub(super) executable: bool,
}

/// The languages that have a template, for handlers or for programs.
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
pub(super) fn files(language: &str, program: bool, name: &str) -> Vec<Made> {
    let template = format!("templates/{}/", directory(language, program));
    let mut made: Vec<Made> = below(&template).map(|(path, content)| render(path, content, name)).collect();
    if !program {
        made.extend(below("wit/").map(|(path, content)| as_it_is(&format!("wit/{path}"), content)));
        if language == "rust" {
            made.extend(below("guest-sdk/").map(|(path, content)| as_it_is(&format!("jobq-guest/{path}"), content)));
        }
    }
    made.sort_by(|a, b| a.path.cmp(&b.path));
    made.dedup_by(|later, earlier| later.path == earlier.path);
    made
}

fn below(start: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    EMBEDDED.iter().filter_map(move |(path, content)| path.strip_prefix(start).map(|path| (path, *content)))
}

fn as_it_is(path: &str, content: &[u8]) -> Made {
    Made { path: path.to_owned(), content: content.to_vec(), executable: content.starts_with(b"#!") }
}

fn render(path: &str, content: &[u8], name: &str) -> Made {
    let identifier = identifier(name);
    let fill = |text: &str| text.replace(NAME, name).replace(IDENTIFIER, &identifier);
    let content = match std::str::from_utf8(content) {
        Ok(text) => fill(text).into_bytes(),
        Err(_) => content.to_vec(),
    };
    as_it_is(&file_name(&fill(path)), &content)
}

/// `gitignore` and `X.in` are called so that the tools of this repository leave them alone.
fn file_name(path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
    let name = match name {
        "gitignore" => ".gitignore",
        name => name.strip_suffix(".in").unwrap_or(name),
    };
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// The name as most languages take it.
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
    fn placeholders_are_filled_in_names_and_text_only() {
        let made = render("src/__ident__/gitignore", b"__name__ is __ident__", "a-b");
        assert_eq!((made.path.as_str(), made.content.as_slice()), ("src/a_b/.gitignore", &b"a-b is a_b"[..]));
        let made = render("Cargo.toml.in", b"\xff__name__", "a-b");
        assert_eq!((made.path.as_str(), made.content.as_slice()), ("Cargo.toml", &b"\xff__name__"[..]));
        assert!(render("build.sh", b"#!/bin/sh\n", "a").executable && !made.executable);
    }

    #[test]
    fn every_template_tells_what_to_do_and_leaves_nothing_open() {
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
    fn the_sdk_that_rust_brings_along_is_whole() {
        let sdk: Vec<_> = below("guest-sdk/").map(|(path, _)| path).collect();
        for file in ["Cargo.toml", "README.md", "src/lib.rs", "wit/handler.wit"] {
            assert!(sdk.contains(&file), "{file} is missing in {sdk:?}");
        }
    }
}
