//! The files in the plugin directory: names and fingerprints, no contents.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file name in the plugin directory, without a path.
pub type FileName = String;

/// The metadata of a file. As long as it stays the same, so does the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    real_path: PathBuf,
    device: u64,
    inode: u64,
    pub(super) len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Fingerprint {
    /// The fingerprint of the file at `path`, symlinks followed.
    ///
    /// # Errors
    /// When its metadata can't be read, or it isn't a regular file.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let real_path = path.canonicalize()?;
        let meta = fs::metadata(&real_path)?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Self::from_metadata(real_path, &meta))
    }

    fn from_metadata(real_path: PathBuf, meta: &Metadata) -> Self {
        Self {
            real_path,
            device: meta.dev(),
            inode: meta.ino(),
            len: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether the content hasn't changed for `quiet`, so that it is probably not being written.
    pub(super) fn is_quiet(&self, quiet: Duration) -> bool {
        let written = SystemTime::UNIX_EPOCH.checked_add(Duration::new(
            self.modified.0.try_into().unwrap_or(0),
            self.modified.1.try_into().unwrap_or(0),
        ));
        written.and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= quiet)
    }
}

/// The `.wasm` files in `dir`, each with its fingerprint or the reason why there is none. A missing directory is empty.
///
/// # Errors
/// When the directory cannot be read.
pub(super) fn scan(dir: &Path) -> io::Result<BTreeMap<FileName, Result<Fingerprint, String>>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        if stem(&name).is_none() {
            continue;
        }
        match Fingerprint::of(&dir.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => _ = files.insert(name, found.map_err(|error| error.to_string())),
        }
    }
    Ok(files)
}

/// The part of a plugin's file name that can be a job type; `None` for other names (hidden ones, other extensions).
pub fn stem(name: &str) -> Option<&str> {
    name.strip_suffix(".wasm").filter(|stem| !stem.is_empty() && !stem.starts_with('.'))
}

/// A file in the plugin directory that looks like a plugin and is never loaded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// Its name; bytes that aren't UTF-8 are escaped.
    pub name: String,
    /// Why it is ignored.
    pub reason: &'static str,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` serves nothing: {}", self.name, self.reason)
    }
}

/// The files in `dir` that look like plugins and are never loaded, by name.
pub fn ignored(dir: &Path) -> Vec<Ignored> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut ignored: Vec<_> = entries.filter_map(|entry| ignored_name(&entry.file_name())).collect();
    ignored.sort();
    ignored
}

fn ignored_name(name: &OsStr) -> Option<Ignored> {
    let extension = Path::new(name).extension()?;
    let reason = if name.as_encoded_bytes().starts_with(b".") {
        return None;
    } else if extension == "cwasm" {
        "native code is never loaded from the plugin directory, only the .wasm it was built from"
    } else if !extension.eq_ignore_ascii_case("wasm") {
        return None;
    } else if name.to_str().is_none() {
        "its name is not UTF-8; rename it"
    } else if extension != "wasm" {
        "its name has to end in `.wasm`, in lower case; rename it"
    } else {
        return None;
    };
    Some(Ignored { name: name.as_encoded_bytes().escape_ascii().to_string(), reason })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn only_visible_wasm_files_are_plugins() {
        assert_eq!(stem("send_email.wasm"), Some("send_email"));
        for other in [".wasm", ".hidden.wasm", "a.cwasm", "a.wasm.tmp", "wasm"] {
            assert_eq!(stem(other), None, "{other}");
        }
    }

    #[test]
    fn files_that_look_like_plugins_and_are_ignored_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let not_utf8 = OsStr::from_bytes(b"caf\xe9.wasm");
        for name in ["a.wasm", "b.WASM", "c.cwasm", ".d.WASM", "e.txt", "f"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        fs::write(dir.path().join(not_utf8), b"").unwrap();
        let names: Vec<_> = ignored(dir.path()).into_iter().map(|ignored| ignored.to_string()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[0].starts_with("`b.WASM` serves nothing: its name has to end in `.wasm`"), "{names:?}");
        assert!(names[1].starts_with("`c.cwasm` serves nothing: native code"), "{names:?}");
        assert!(names[2].starts_with("`caf\\xe9.wasm` serves nothing: its name is not UTF-8"), "{names:?}");
    }

    #[test]
    fn a_directory_named_like_a_plugin_has_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("x.wasm")).unwrap();
        fs::write(dir.path().join("y.wasm"), b"").unwrap();
        std::os::unix::fs::symlink("loop.wasm", dir.path().join("loop.wasm")).unwrap();
        let files = scan(dir.path()).unwrap();
        assert!(files["x.wasm"].is_err());
        assert!(files["y.wasm"].is_ok());
        assert!(files["loop.wasm"].is_err());
    }

    #[test]
    fn a_missing_directory_is_empty() {
        assert!(scan(Path::new("/nonexistent/plugins")).unwrap().is_empty());
    }
}
