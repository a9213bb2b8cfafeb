//! The directory with the files, and what a payload may name in it.

use std::fs::File;
use std::io::ErrorKind;

use crate::failure::Failure;

/// Where the host shows the granted directory.
pub const ROOT: &str = "/data";

/// The path of a file, relative to [`ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted(String);

impl Granted {
    /// Takes a path relative to [`ROOT`], or one that begins with it; the error says what is wrong with any other.
    ///
    /// The sandbox would refuse a path that leads out; this says so in words.
    pub fn path(path: &str) -> Result<Granted, String> {
        inside_root(path).map(Granted).map_err(|wrong| format!("{path:?} {wrong}"))
    }

    /// The path as messages name it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Opens the file and tells its size.
    pub fn open(&self) -> Result<(File, u64), Failure> {
        let open = || -> std::io::Result<_> {
            let file = File::open(format!("{ROOT}/{}", self.0))?;
            let metadata = file.metadata()?;
            Ok((file, metadata))
        };
        match open() {
            Ok((_, metadata)) if metadata.is_dir() => Err(Failure::Fatal("is a directory".into()).in_file(&self.0)),
            Ok((file, metadata)) => Ok((file, metadata.len())),
            Err(_) if std::fs::metadata(ROOT).is_err() => Err(Failure::Retry(format!(
                "this job type has no directory {ROOT}; jobq.toml grants one with dirs = [{{ host = \"…\", guest = \"{ROOT}\" }}]"
            ))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = "not there; it may still arrive, so this is worth another attempt";
                Err(Failure::Retry(message.into()).in_file(&self.0))
            }
            Err(error) => Err(Failure::Retry(error.to_string()).in_file(&self.0)),
        }
    }
}

fn inside_root(path: &str) -> Result<String, &'static str> {
    let relative = match path.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/')) {
        Some(relative) => relative,
        None if path.starts_with('/') => return Err("is not in /data, the only directory this handler has"),
        None => path,
    };
    if relative.split('/').any(|part| part == "..") {
        return Err("leads out of /data");
    }
    let parts: Vec<&str> = relative.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() {
        return Err("names no file");
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        let path = inside_root;
        assert_eq!(path("sales.csv"), Ok("sales.csv".into()));
        assert_eq!(path("/data/2026/sales.csv"), Ok("2026/sales.csv".into()));
        assert_eq!(path("./a//b.csv"), Ok("a/b.csv".into()));
        assert_eq!(path("/data/./a.csv"), Ok("a.csv".into()));
        assert_eq!(path("..a/b..csv"), Ok("..a/b..csv".into()));
        for out in ["..", "a/../../b", "/data/../etc/passwd", "/data/.."] {
            assert_eq!(path(out), Err("leads out of /data"), "{out}");
        }
        for absolute in ["/etc/passwd", "/database/a.csv", "/", "/data"] {
            assert_eq!(path(absolute), Err("is not in /data, the only directory this handler has"), "{absolute}");
        }
        for nothing in ["", ".", "./", "/data/"] {
            assert_eq!(path(nothing), Err("names no file"), "{nothing}");
        }
    }
}
