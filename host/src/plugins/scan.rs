//! What lies in the plugin directory: names and fingerprints, no contents.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A bare file name in the plugin directory.
pub type FileName = String;

/// What a file looked like: as long as it stays the same, so does its content.
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
    /// When it cannot be looked at or is no regular file.
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

    /// Whether the content has not been touched for `quiet`, so that nobody is in the middle of writing it.
    pub(super) fn is_quiet(&self, quiet: Duration) -> bool {
        let written = SystemTime::UNIX_EPOCH.checked_add(Duration::new(
            self.modified.0.try_into().unwrap_or(0),
            self.modified.1.try_into().unwrap_or(0),
        ));
        written.and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= quiet)
    }
}

/// The `.wasm` files of `dir`; an entry that cannot be looked at carries the reason. A directory that does not exist is empty.
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

/// The part of a plugin's file name that can be a job type; `None` for names that are no plugin's (hidden ones, other endings).
pub fn stem(name: &str) -> Option<&str> {
    name.strip_suffix(".wasm").filter(|stem| !stem.is_empty() && !stem.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_wasm_files_are_plugins() {
        assert_eq!(stem("send_email.wasm"), Some("send_email"));
        for other in [".wasm", ".hidden.wasm", "a.cwasm", "a.wasm.tmp", "wasm"] {
            assert_eq!(stem(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_named_like_a_plugin_is_told_as_such() {
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
