//! Directories granted by jobq.toml.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, fatal, retry};
use crate::host::Job;

/// A directory granted by jobq.toml, opened by [`Context::dir`](crate::Context::dir).
///
/// Its functions take paths from payloads, relative to the directory or starting with its guest path. A path that leads out of
/// the directory is a clear error; the sandbox alone would only report that the file doesn't exist. For other operations, use
/// `std::fs` on [`path`](Dir::path).
#[derive(Clone, Debug)]
pub struct Dir {
    /// Its path in the guest.
    guest: String,
    /// Its path for `std::fs`: the guest path, or in native tests a directory on the host.
    root: PathBuf,
    job: Job,
}

impl Dir {
    pub(crate) fn open(guest: &str, root: PathBuf, job: &Job) -> Result<Dir> {
        let dir = Dir { guest: guest.trim_end_matches('/').into(), root, job: job.clone() };
        if !dir.root.is_dir() {
            let guest = &dir.guest;
            return Err(retry(format!("this job type has no directory {guest}; {}", dir.advice(""))));
        }
        Ok(dir)
    }

    /// The path of a file named by a payload, for `std::fs`.
    ///
    /// # Errors
    /// Fatal if the name leads out of this directory or isn't a file name.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        Ok(self.root.join(self.relative(name)?))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Fatal if the name leads out of this directory or is a directory.
    /// A retry if the file can't be read or doesn't exist, because it may still be created.
    pub fn read(&self, name: &str) -> Result<File> {
        let relative = self.relative(name)?;
        let open = || -> io::Result<_> {
            let file = File::open(self.root.join(&relative))?;
            let metadata = file.metadata()?;
            Ok((file, metadata))
        };
        match open() {
            Ok((_, metadata)) if metadata.is_dir() => Err(fatal(format!("{relative}: is a directory"))),
            Ok((file, _)) => Ok(file),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(retry(format!("{relative}: not found; retrying in case it is created later")))
            }
            Err(error) => Err(retry(format!("{relative}: {error}"))),
        }
    }

    /// Writes a file atomically, replacing an existing one: writes a temporary file beside it, syncs it and renames it. Creates
    /// missing parent directories.
    ///
    /// # Errors
    /// Fatal if the name leads out of this directory or isn't a file name. A retry if the file can't be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let relative = self.relative(name)?;
        let path = self.root.join(&relative);
        let parent = path.parent().unwrap_or(&self.root);
        let temporary = parent.join(self.temporary(self.job.attempt));
        if self.job.attempt > 1 {
            // The previous attempt leaves a file if it was stopped while it wrote.
            let _ = fs::remove_file(parent.join(self.temporary(self.job.attempt - 1)));
        }
        fs::create_dir_all(parent)
            .and_then(|()| write_to_disk(&temporary, bytes))
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(|error| self.not_written(&relative, &error))
    }

    /// The name of the temporary file. Each attempt has its own, in case an attempt that counts as lost is still writing.
    fn temporary(&self, attempt: u32) -> String {
        // An id chosen on insert may not be a valid file name.
        let mut id = DefaultHasher::new();
        self.job.id.hash(&mut id);
        format!(".{:016x}.{attempt}.tmp", id.finish())
    }

    /// The normalized path of a file, relative to this directory.
    fn relative(&self, name: &str) -> Result<String> {
        let guest = &self.guest;
        let relative = match name.strip_prefix(guest.as_str()).and_then(|rest| rest.strip_prefix('/')) {
            Some(relative) => relative,
            None if name.starts_with('/') => return Err(fatal(format!("{name:?} is not in {guest}"))),
            None => name,
        };
        if relative.split('/').any(|part| part == "..") {
            return Err(fatal(format!("{name:?} leads out of {guest}")));
        }
        let parts: Vec<&str> = relative.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.is_empty() || relative.contains('\0') {
            return Err(fatal(format!("{name:?} is not a file name")));
        }
        Ok(parts.join("/"))
    }

    fn not_written(&self, relative: &str, error: &io::Error) -> Error {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                format!("; {}", self.advice(", write = true"))
            }
            _ => String::new(),
        };
        retry(format!("{relative}: failed to write to {}: {error}{hint}", self.guest))
    }

    fn advice(&self, options: &str) -> String {
        let (guest, job_type) = (&self.guest, &self.job.job_type);
        format!(
            "jobq.toml grants it with dirs = [{{ host = \"…\", guest = \"{guest}\"{options} }}] under [jobs.{job_type}]"
        )
    }
}

fn write_to_disk(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::Context;
    use crate::testing::Fake;

    /// An empty directory, and a context that grants it as `/data`.
    fn granted(test: &str) -> (PathBuf, Context) {
        let place = std::env::temp_dir().join(format!("jobq-guest-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        let ctx = Fake::new().dir("/data", &place).context();
        (place, ctx)
    }

    #[test]
    fn paths_outside_of_the_directory_are_fatal() {
        let (place, ctx) = granted("inside");
        let dir = ctx.dir("/data").unwrap();
        for (name, path) in [
            ("a.csv", "a.csv"),
            ("/data/2026/a.csv", "2026/a.csv"),
            ("./a//b.csv", "a/b.csv"),
            ("..a/b..csv", "..a/b..csv"),
        ] {
            assert_eq!(dir.path(name), Ok(place.join(path)), "{name}");
        }
        for (name, wrong) in [
            ("..", "leads out of /data"),
            ("a/../../b", "leads out of /data"),
            ("/data/../etc/passwd", "leads out of /data"),
            ("/etc/passwd", "is not in /data"),
            ("/database/a.csv", "is not in /data"),
            ("/data", "is not in /data"),
            ("", "is not a file name"),
            ("./", "is not a file name"),
            ("/data/", "is not a file name"),
        ] {
            let wrong = Err(Error::Fatal(format!("{name:?} {wrong}")));
            assert_eq!(dir.path(name), wrong);
            assert_eq!(dir.write(name, b"").map(|()| PathBuf::new()), wrong);
        }
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_file_is_replaced_atomically() {
        let (place, ctx) = granted("write");
        let dir = ctx.dir("/data/").unwrap();
        dir.write("new/a.txt", b"first").unwrap();
        dir.write("/data/new/a.txt", b"second").unwrap();
        let mut text = String::new();
        dir.read("new/a.txt").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "second");
        assert_eq!(fs::read_dir(place.join("new")).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn the_temporary_file_of_a_stopped_attempt_is_deleted() {
        let (place, _) = granted("remains");
        let attempt = |number| Fake::new().attempt(number).dir("/data", &place).context().dir("/data").unwrap();
        let remains = |number| place.join(attempt(1).temporary(number));
        fs::write(remains(1), b"half").unwrap();
        fs::write(remains(3), b"of another attempt").unwrap();
        attempt(2).write("a.txt", b"whole").unwrap();
        assert!(!remains(1).exists() && !remains(2).exists() && remains(3).exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_missing_file_or_directory_is_a_retry() {
        let (place, ctx) = granted("missing");
        let dir = ctx.dir("/data").unwrap();
        let message = "a.csv: not found; retrying in case it is created later";
        assert_eq!(dir.read("./a.csv").map(drop), Err(Error::Retry(message.into())));
        dir.write("sub/a.csv", b"").unwrap();
        assert_eq!(dir.read("sub").map(drop), Err(Error::Fatal("sub: is a directory".into())));
        assert!(matches!(dir.write("sub/a.csv/b", b""), Err(Error::Retry(_))));

        let message = "this job type has no directory /other; \
                       jobq.toml grants it with dirs = [{ host = \"…\", guest = \"/other\" }] under [jobs.test]";
        assert_eq!(ctx.dir("/other").map(drop), Err(Error::Retry(message.into())));
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_read_only_directory_names_the_grant() {
        let (place, ctx) = granted("read-only");
        let dir = ctx.dir("/data").unwrap();
        let denied = dir.not_written("a", &ErrorKind::PermissionDenied.into()).to_string();
        assert!(denied.contains("guest = \"/data\", write = true }] under [jobs.test]"), "{denied}");
        let full = dir.not_written("a", &ErrorKind::StorageFull.into()).to_string();
        assert_eq!(full, "a: failed to write to /data: no storage space");
        fs::remove_dir_all(place).unwrap();
    }
}
