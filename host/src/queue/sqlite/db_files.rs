//! Whether the database is still where it was opened, and how large its log has grown. Looks at names only, opens nothing.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytesize::ByteSize;

use super::file_change::Stamp;
use crate::queue::StoreError;

/// A log beyond this means that it cannot be written back into the file.
const LARGE_LOG: u64 = 256 << 20;

/// Device and inode.
type Identity = (u64, u64);

/// The files as they were when they were opened, and whether they can still be relied on.
pub(super) struct FilePlace {
    /// As it was named, which may be a link.
    named: PathBuf,
    database: Watched,
    log: Watched,
    index: Watched,
    /// What ended it. Nothing is written after that.
    end: OnceLock<StoreError>,
}

/// A file under its real name.
struct Watched {
    path: PathBuf,
    identity: Identity,
}

impl Watched {
    fn of(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path.metadata()?);
        Ok(Self { path, identity })
    }
}

impl FilePlace {
    /// The place of a database that a connection has open: its log and the index of that exist.
    pub(super) fn of(named: &Path) -> io::Result<Self> {
        let database = named.canonicalize()?;
        let beside = |suffix: &str| {
            let mut name = OsString::from(&database);
            name.push(suffix);
            Watched::of(PathBuf::from(name))
        };
        let (log, index) = (beside("-wal")?, beside("-shm")?);
        Ok(Self { named: named.to_owned(), database: Watched::of(database)?, log, index, end: OnceLock::new() })
    }

    /// The database's real name.
    pub(super) fn database(&self) -> &Path {
        &self.database.path
    }

    /// The write-ahead log.
    pub(super) fn log(&self) -> &Path {
        &self.log.path
    }

    /// The index of the log, which is shared memory.
    pub(super) fn index(&self) -> &Path {
        &self.index.path
    }

    /// Whether every file is still the one that was opened. Costs three looks at names, some 3 µs.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when another file, or none, bears one of the names, and whatever else has ended it.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if let Some(end) = self.end.get() {
            return Err(end.clone());
        }
        let files = [(&self.named, &self.database), (&self.log.path, &self.log), (&self.index.path, &self.index)];
        for (path, file) in files {
            if path.metadata().ok().is_none_or(|found| identity(&found) != file.identity) {
                return Err(self.over(StoreError::Gone(file.path.display().to_string())));
            }
        }
        Ok(())
    }

    /// The database itself, by name.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let file = self.database.path.metadata().ok()?;
        Some(Stamp { modified: (file.mtime(), file.mtime_nsec()), size: file.len() })
    }

    /// Takes note of an error after which nothing may be written any more.
    pub(super) fn over(&self, error: StoreError) -> StoreError {
        if error.is_fatal() {
            return self.end.get_or_init(|| error).clone();
        }
        error
    }

    /// What an operator should know, if anything.
    pub(super) fn remark(&self) -> Option<String> {
        let size = self.log.path.metadata().map_or(0, |log| log.len());
        if size > LARGE_LOG {
            let size = ByteSize::b(size);
            return Some(format!(
                "the write-ahead log has grown to {size}: some program keeps a read transaction open on the database, \
                 or writes faster than the disk takes it"
            ));
        }
        let links = self.database.path.metadata().map_or(1, |database| database.nlink());
        (links > 1).then(|| {
            format!(
                "`{}` has {links} names (hard links): a program that opens it by another one damages it",
                self.database.path.display()
            )
        })
    }
}

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino())
}
