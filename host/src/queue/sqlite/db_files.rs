//! The three files of an open database: whether they are still the ones that were opened, and how large the log is.
//! Looks at names and metadata only; opens nothing.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytesize::ByteSize;

use super::file_change::FileStamp;
use crate::queue::StoreError;

/// A larger log means that checkpoints cannot keep up.
const LARGE_LOG: u64 = 256 << 20;

/// Device and inode.
type Identity = (u64, u64);

/// The files as they were when the database was opened, and the first fatal error.
pub(super) struct DbFiles {
    /// The database as it was named, which may be a link.
    named: PathBuf,
    database: OpenedFile,
    log: OpenedFile,
    index: OpenedFile,
    /// Set by the first fatal error. Nothing is written after it.
    fatal: OnceLock<StoreError>,
}

/// A file under its real name.
struct OpenedFile {
    path: PathBuf,
    identity: Identity,
}

impl OpenedFile {
    fn of(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path.metadata()?);
        Ok(Self { path, identity })
    }
}

impl DbFiles {
    /// The files of a database that a connection has open, so that its log and shared memory exist.
    pub(super) fn of(named: &Path) -> io::Result<Self> {
        let database = named.canonicalize()?;
        let beside = |suffix: &str| {
            let mut name = OsString::from(&database);
            name.push(suffix);
            OpenedFile::of(PathBuf::from(name))
        };
        let (log, index) = (beside("-wal")?, beside("-shm")?);
        Ok(Self { named: named.to_owned(), database: OpenedFile::of(database)?, log, index, fatal: OnceLock::new() })
    }

    /// The database's real name.
    pub(super) fn database(&self) -> &Path {
        &self.database.path
    }

    /// The write-ahead log.
    pub(super) fn log(&self) -> &Path {
        &self.log.path
    }

    /// The log's index in shared memory.
    pub(super) fn index(&self) -> &Path {
        &self.index.path
    }

    /// Checks that every file is still the one that was opened. Three `stat` calls, some 3 µs.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when a file is missing or was replaced; otherwise the first fatal error, if there was one.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if let Some(fatal) = self.fatal.get() {
            return Err(fatal.clone());
        }
        let files = [(&self.named, &self.database), (&self.log.path, &self.log), (&self.index.path, &self.index)];
        for (path, file) in files {
            if path.metadata().ok().is_none_or(|found| identity(&found) != file.identity) {
                return Err(self.record_fatal(StoreError::Gone(file.path.display().to_string())));
            }
        }
        Ok(())
    }

    /// The modification time and size of the database.
    pub(super) fn stamp(&self) -> Option<FileStamp> {
        let file = self.database.path.metadata().ok()?;
        Some(FileStamp { modified: (file.mtime(), file.mtime_nsec()), size: file.len() })
    }

    /// Keeps a fatal error, after which nothing is written. Returns the first one, or `error` if it isn't fatal.
    pub(super) fn record_fatal(&self, error: StoreError) -> StoreError {
        if error.is_fatal() {
            return self.fatal.get_or_init(|| error).clone();
        }
        error
    }

    /// A warning for the operator, if there is one.
    pub(super) fn warning(&self) -> Option<String> {
        let size = self.log.path.metadata().map_or(0, |log| log.len());
        if size > LARGE_LOG {
            let size = ByteSize::b(size);
            return Some(format!(
                "the write-ahead log has grown to {size}: a program keeps a read transaction open on the database, \
                 or writes faster than the disk can store"
            ));
        }
        let links = self.database.path.metadata().map_or(1, |database| database.nlink());
        (links > 1).then(|| {
            format!(
                "`{}` has {links} names (hard links): a program that opens it by another name damages it",
                self.database.path.display()
            )
        })
    }
}

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino())
}
