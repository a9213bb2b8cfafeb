//! Whether the database is still where it was opened, and how large its log has grown. Looks at names only, opens nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytesize::ByteSize;

use crate::queue::StoreError;

/// A log beyond this means that it cannot be written back into the file.
const LARGE_LOG: u64 = 256 << 20;

/// The file as it was when it was opened.
pub(super) struct FilePlace {
    database: PathBuf,
    identity: Option<(u64, u64)>,
    /// The same of the write-ahead log, once it has been seen: it stays as long as anybody has the database open.
    log: OnceLock<(u64, u64)>,
}

impl FilePlace {
    pub(super) fn of(database: &Path) -> Self {
        Self { database: database.to_owned(), identity: identity(database), log: OnceLock::new() }
    }

    /// What an operator should know, if anything.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when another file, or none, bears the name.
    pub(super) fn look(&self) -> Result<Option<String>, StoreError> {
        if identity(&self.database) != self.identity {
            return Err(StoreError::Gone(self.database.display().to_string()));
        }
        let mut log = self.database.clone().into_os_string();
        log.push("-wal");
        let log = Path::new(&log);
        let found = identity(log);
        if let Some(found) = found {
            self.log.get_or_init(|| found);
        }
        if self.log.get().copied() != found {
            return Err(StoreError::Gone(log.display().to_string()));
        }
        let size = log.metadata().map_or(0, |log| log.len());
        Ok((size > LARGE_LOG).then(|| {
            let size = ByteSize::b(size);
            format!(
                "the write-ahead log has grown to {size}: some program keeps a read transaction open on the database"
            )
        }))
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}
