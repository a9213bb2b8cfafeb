//! Reads columns as the types of the queue. Whatever a foreign program stored is read as the nearest valid value.

use std::time::Duration;

use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Result, Row};

use crate::queue::{Id, Job, JobRef, Lease, Status, Timestamp};

/// The columns that [`job`] reads.
macro_rules! job_columns {
    () => {
        "seq, id, type, payload, status, priority, attempts, max_attempts, timeout_ms, scheduled_at, started_at, \
         completed_at, result, error, created_at, unique_key, lease, lease_until, worker, \
         progress_percent, progress_message"
    };
}
pub(super) use job_columns;

pub(super) fn job(row: &Row<'_>) -> Result<Job> {
    Ok(Job {
        reference: reference(row, 0)?,
        id: id(row, 1)?,
        job_type: text(row, 2)?,
        payload: text(row, 3)?,
        status: status(row, 4)?,
        priority: row.get(5)?,
        attempts: small(row, 6)?,
        max_attempts: optional_small(row, 7)?,
        timeout: optional_duration(row, 8)?,
        scheduled_at: instant(row, 9)?,
        started_at: optional_instant(row, 10)?,
        completed_at: optional_instant(row, 11)?,
        result: optional_text(row, 12)?,
        error: optional_text(row, 13)?,
        created_at: instant(row, 14)?,
        key: optional_text(row, 15)?,
        lease: row.get(16)?,
        lease_until: optional_instant(row, 17)?,
        worker: optional_text(row, 18)?,
        progress: progress(row, 19)?,
    })
}

pub(super) fn reference(row: &Row<'_>, column: usize) -> Result<JobRef> {
    row.get(column).map(JobRef::from_seq)
}

/// The fence of a worker's write, as its first three parameters.
pub(super) fn fence(lease: &Lease) -> (i64, i64, &str) {
    (lease.job.seq(), lease.token, lease.worker.as_str())
}

/// Text, with U+FFFD for bytes that are not UTF-8.
pub(super) fn text(row: &Row<'_>, column: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

pub(super) fn optional_text(row: &Row<'_>, column: usize) -> Result<Option<String>> {
    let bytes = row.get_ref(column)?.as_bytes_or_null()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

pub(super) fn id(row: &Row<'_>, column: usize) -> Result<Id> {
    Ok(Id::stored(&String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?)))
}

pub(super) fn status(row: &Row<'_>, column: usize) -> Result<Status> {
    word(row, column, Status::parse)
}

/// One of a fixed list of words.
pub(super) fn word<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<T> {
    let word = row.get_ref(column)?.as_str()?;
    parse(word).ok_or(rusqlite::Error::FromSqlConversionFailure(
        column,
        Type::Text,
        Box::new(FromSqlError::InvalidType),
    ))
}

/// A count, clamped to 32 bits.
pub(super) fn small(row: &Row<'_>, column: usize) -> Result<u32> {
    row.get(column).map(clamp)
}

pub(super) fn optional_small(row: &Row<'_>, column: usize) -> Result<Option<u32>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(clamp))
}

/// A number; negative ones read as 0.
pub(super) fn big(row: &Row<'_>, column: usize) -> Result<u64> {
    row.get(column).map(unsigned)
}

pub(super) fn optional_big(row: &Row<'_>, column: usize) -> Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(unsigned))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn clamp(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

pub(super) fn instant(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

pub(super) fn optional_instant(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(super) fn optional_duration(row: &Row<'_>, column: usize) -> Result<Option<Duration>> {
    Ok(optional_big(row, column)?.map(Duration::from_millis))
}

fn progress(row: &Row<'_>, column: usize) -> Result<Option<(u8, String)>> {
    let percent: Option<i64> = row.get(column)?;
    let Some(percent) = percent else { return Ok(None) };
    let percent = u8::try_from(percent.clamp(0, 100)).unwrap_or(100);
    Ok(Some((percent, optional_text(row, column + 1)?.unwrap_or_default())))
}

/// A duration in milliseconds, as the table stores it.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
