//! Opens a queue in the right backend, so that its users don't know which one it is.

use std::sync::Arc;

use super::Store;
use super::sqlite::{OpenError, OpenMode, QueueOptions, SqliteStore};

/// Opens the queue and migrates its tables. Blocks. The only durable backend is a SQLite file.
///
/// # Errors
/// See [`OpenError`]; [`OpenError::NoDatabase`] and [`OpenError::NoTable`] only occur with [`OpenMode::Existing`].
pub fn open(options: QueueOptions, mode: OpenMode) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(SqliteStore::open(options, mode)?))
}
