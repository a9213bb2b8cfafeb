//! What an error of SQLite means for whoever asked.

use rusqlite::ErrorCode;

use crate::queue::StoreError;

/// Whether it is about the rows of one verb; every other error is about the database and meets all verbs alike.
pub(super) fn is_about_the_rows(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        }
        None => true,
    }
}

/// Whether another connection is in the way.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full(text),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly(text),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig) => Self::Refused(text),
            _ => Self::Failed(text),
        }
    }
}
