//! Whether another connection has written, asked of the one connection that writes here.

use rusqlite::Result;

use super::session::Session;

/// Another number whenever a connection but this one has committed. Read from shared memory: about 3 µs.
const DATA_VERSION: &str = "PRAGMA data_version";

pub(super) fn data_version(db: &Session<'_>) -> Result<i64> {
    Ok(db.first(DATA_VERSION, [], |row| row.get(0))?.unwrap_or(0))
}
