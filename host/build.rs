//! Puts the templates of `jobq plugin new` into the binary, with the contract and the SDK that they bring along.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What a project may be given, from the root of the repository.
const EMBEDDED: [&str; 9] = [
    "templates",
    "wit",
    "guest-sdk/Cargo.toml",
    "guest-sdk/README.md",
    "guest-sdk/LICENSE-APACHE",
    "guest-sdk/LICENSE-MIT",
    "guest-sdk/examples",
    "guest-sdk/src",
    "guest-sdk/wit",
];

fn main() -> io::Result<()> {
    let root = fs::canonicalize(Path::new(&variable("CARGO_MANIFEST_DIR")?).join(".."))?;
    let mut files = Vec::new();
    for part in EMBEDDED {
        collect(&root.join(part), &mut files)?;
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        // The path stays here: only the name from the root and the content are in the binary.
        writeln!(list, "    ({:?}, include_bytes!({file:?})),", name.display().to_string())
            .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("embedded.rs"), list)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    // Of a directory, what is new is noticed by this; of a file, that it has changed or gone.
    println!("cargo::rerun-if-changed={}", path.display());
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files))
}
