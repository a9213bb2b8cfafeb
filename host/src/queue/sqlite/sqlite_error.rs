//! Classifies the errors of SQLite.

use rusqlite::{ErrorCode, ffi};

use crate::queue::StoreError;

/// Whether the rows of one command are at fault. Every other error concerns the database, and so all commands.
pub(super) fn is_about_the_rows(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        }
        None => true,
    }
}

/// Whether another connection holds the lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Errors after which the file cannot be relied on.
fn fatal(error: &rusqlite::Error, text: &str) -> Option<StoreError> {
    match error.sqlite_error()?.extended_code {
        ffi::SQLITE_READONLY_DBMOVED => Some(StoreError::Gone(text.to_owned())),
        // A page of the log is missing.
        ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS => Some(StoreError::Corrupt(text.to_owned())),
        _ => match error.sqlite_error_code()? {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(StoreError::Corrupt(text.to_owned())),
            _ => None,
        },
    }
}

/// The table that a statement of ours needs and that is missing. For one that a trigger of the application needs, SQLite adds
/// the name of the schema.
fn missing_table(error: &rusqlite::Error) -> Option<&str> {
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        _ => return None,
    };
    message.strip_prefix("no such table: ").filter(|table| !table.contains('.'))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        if let Some(fatal) = fatal(&error, &text) {
            return fatal;
        }
        if let Some(table) = missing_table(&error) {
            return Self::NoTable(table.to_owned());
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full(text),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly(text),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig) => Self::Refused(text),
            _ => Self::Failed(text),
        }
    }
}
