//! Deletes finished jobs that are older than their retention. A trigger deletes their attempts and logs.
//!
//! A call ends after a few milliseconds, so that other commands don't wait long behind it. The next call continues where it
//! stopped, so that jobs kept by a foreign key of the application don't hold up the others.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Result, params};

use super::foreign_keys::Referrers;
use super::orphans::OrphanCursor;
use super::session::Session;
use super::{bulk_select, row, sqlite_error};
use crate::queue::{JobRef, Pruned, Retention, Selected, Status, Timestamp};

/// The oldest jobs of one finished state, after a cursor.
const OLD: &str = r#"
SELECT completed_at, seq FROM "jobs" INDEXED BY "jobs__done"
WHERE (status = 'completed' OR status = 'dead' OR status = 'cancelled') AND status = ?1 AND completed_at <= ?2
  AND (completed_at, seq) > (?3, ?4)
ORDER BY completed_at, seq LIMIT ?5"#;

const DELETE: &str = r#"DELETE FROM "jobs" WHERE seq = ?1"#;

/// A call stops after this time.
const SLICE: Duration = Duration::from_millis(5);

/// Rows read at once.
const STRIDE: usize = 100;

/// How far a call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PruneCursor {
    /// Index of the state.
    state: usize,
    /// The last row read; `None` before the first row of the state.
    last: Option<(Timestamp, JobRef)>,
}

/// What to delete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prune {
    pub(super) retention: Retention,
    pub(super) limit: usize,
    /// Where the previous call stopped.
    pub(super) from: PruneCursor,
}

impl Prune {
    /// The finished states in order, each with its retention.
    fn states(&self) -> [(Status, Option<Duration>); 3] {
        [
            (Status::Completed, self.retention.completed),
            (Status::Cancelled, self.retention.cancelled),
            (Status::Dead, self.retention.dead),
        ]
    }

    /// The next jobs that are old enough. Moves the cursor to the next state at the end of one; none after the last.
    fn next(&self, db: &Session<'_>, cursor: &mut PruneCursor, most: usize) -> Result<Vec<(Timestamp, JobRef)>> {
        while let Some((status, kept)) = self.states().get(cursor.state).copied() {
            let rows = kept.map(|kept| old(db, status, kept, cursor.last, most)).transpose()?.unwrap_or_default();
            if !rows.is_empty() {
                return Ok(rows);
            }
            *cursor = PruneCursor { state: cursor.state + 1, last: None };
        }
        Ok(Vec::new())
    }
}

/// Deletes, and returns where the next call continues: at the start, if nothing is left.
pub(super) fn prune(db: &Session<'_>, prune: &Prune) -> Result<(Pruned, PruneCursor)> {
    let started = Instant::now();
    let referrers = Referrers::find(db)?;
    let (mut pruned, mut cursor) = (Pruned::default(), prune.from);
    loop {
        let rows = prune.next(db, &mut cursor, STRIDE)?;
        if rows.is_empty() {
            return Ok((pruned, PruneCursor::default()));
        }
        for row in rows {
            if pruned.deleted >= prune.limit || (cursor != prune.from && started.elapsed() >= SLICE) {
                pruned.more = true;
                return Ok((pruned, cursor));
            }
            cursor.last = Some(row);
            match delete(db, &referrers, row.1)? {
                None => pruned.deleted += 1,
                Some(obstacle) => _ = pruned.obstacles.insert(obstacle),
            }
        }
    }
}

/// The result if nothing is old enough.
pub(super) fn look(db: &Session<'_>, prune: &Prune) -> Result<Option<(Pruned, PruneCursor)>> {
    let mut cursor = prune.from;
    let nothing = prune.next(db, &mut cursor, 1)?.is_empty();
    Ok(nothing.then(|| (Pruned::default(), PruneCursor::default())))
}

/// All jobs that are old enough now, by the same query.
pub(super) fn prunable(db: &Session<'_>, retention: &Retention) -> Result<Selected> {
    let prune = Prune { retention: *retention, limit: usize::MAX, from: PruneCursor::default() };
    let mut jobs = Vec::new();
    for (status, kept) in prune.states() {
        let Some(kept) = kept else { continue };
        jobs.extend(old(db, status, kept, None, usize::MAX)?.into_iter().map(|(_, job)| job));
    }
    bulk_select::with_first_ids(db, jobs)
}

/// Deletes one job. Returns what prevents it, if anything does.
pub(super) fn delete(db: &Session<'_>, referrers: &Referrers, job: JobRef) -> Result<Option<String>> {
    if let Some(table) = referrers.refer_to(db, job)? {
        return Ok(Some(format!(
            "table `{table}` refers to them by a foreign key without ON DELETE SET NULL or CASCADE"
        )));
    }
    match db.execute(DELETE, [job.seq()]) {
        Ok(_) => Ok(None),
        Err(error) if sqlite_error::is_about_the_rows(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

fn old(
    db: &Session<'_>,
    status: Status,
    kept: Duration,
    after: Option<(Timestamp, JobRef)>,
    most: usize,
) -> Result<Vec<(Timestamp, JobRef)>> {
    let horizon = db.now().before(kept).as_millis();
    let (instant, seq) = after.map_or((i64::MIN, i64::MIN), |(instant, job)| (instant.as_millis(), job.seq()));
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    db.all(OLD, params![status.as_str(), horizon, instant, seq, most], |row| {
        Ok((row::instant(row, 0)?, row::reference(row, 1)?))
    })
}

/// What the cleaner keeps between calls.
#[derive(Default)]
pub(super) struct CleanerState(Mutex<State>);

#[derive(Default)]
struct State {
    /// How far the scan of old jobs has come.
    prune: PruneCursor,
    /// How far the scan for orphaned rows has come.
    orphans: OrphanCursor,
    /// Whether the log has text of jobs that were deleted.
    has_deleted: bool,
}

impl CleanerState {
    pub(super) fn prune(&self) -> PruneCursor {
        self.lock().prune
    }

    pub(super) fn set_prune(&self, cursor: PruneCursor) {
        self.lock().prune = cursor;
    }

    pub(super) fn orphans(&self) -> OrphanCursor {
        self.lock().orphans
    }

    pub(super) fn set_orphans(&self, cursor: OrphanCursor) {
        self.lock().orphans = cursor;
    }

    pub(super) fn deleted(&self) {
        self.lock().has_deleted = true;
    }

    /// Whether something was deleted since the last call.
    pub(super) fn take_deleted(&self) -> bool {
        std::mem::take(&mut self.lock().has_deleted)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
