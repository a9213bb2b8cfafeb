//! Opens the queue that the settings name, whatever keeps it: who uses it knows no backend.

use std::sync::Arc;

use super::Store;
use super::sqlite::{OpenError, OpenMode, QueueOptions, SqliteStore};

/// Opens the queue and brings its tables to the newest version. Blocks. There is one backend: a file of SQLite.
///
/// # Errors
/// See [`OpenError`]; [`OpenError::NoDatabase`] and [`OpenError::NoTable`] come only with [`OpenMode::Existing`].
pub fn open(options: QueueOptions, mode: OpenMode) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(SqliteStore::open(options, mode)?))
}
