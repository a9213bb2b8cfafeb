//! Finished jobs that are old enough are deleted, and with them, by a trigger, their ledger and logs.
//!
//! A call ends after a few milliseconds, so that nobody waits for long behind it, and the next one goes on from there: what is
//! kept because a table of the application refers to it does not stand in the way of the others.

use std::time::{Duration, Instant};

use rusqlite::{Result, params};

use super::foreign_keys::Referrers;
use super::session::Session;
use super::{bulk_select, row, sqlite_error};
use crate::queue::{JobRef, Pruned, Retention, Selected, Status, Timestamp};

/// The oldest of one finished state after a place.
const OLD: &str = r#"
SELECT completed_at, seq FROM "jobs" INDEXED BY "jobs__done"
WHERE (status = 'completed' OR status = 'dead' OR status = 'cancelled') AND status = ?1 AND completed_at <= ?2
  AND (completed_at, seq) > (?3, ?4)
ORDER BY completed_at, seq LIMIT ?5"#;

const DELETE: &str = r#"DELETE FROM "jobs" WHERE seq = ?1"#;

/// A call that has taken so long goes no further.
const SLICE: Duration = Duration::from_millis(5);

/// Rows that are looked up at once.
const STRIDE: usize = 100;

/// How far a call has come: the last row that it looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the states.
    state: usize,
    /// `None` before the first row of the state.
    last: Option<(Timestamp, JobRef)>,
}

/// What is to be deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prune {
    pub(super) retention: Retention,
    pub(super) limit: usize,
    /// Where the call before this one has stopped.
    pub(super) from: Place,
}

impl Prune {
    /// The finished states in the order in which they are gone through, each with its retention.
    fn states(&self) -> [(Status, Option<Duration>); 3] {
        [
            (Status::Completed, self.retention.completed),
            (Status::Cancelled, self.retention.cancelled),
            (Status::Dead, self.retention.dead),
        ]
    }

    /// The next that are old enough, and where they end; none when all states are through.
    fn next(&self, db: &Session<'_>, place: &mut Place, most: usize) -> Result<Vec<(Timestamp, JobRef)>> {
        while let Some((status, kept)) = self.states().get(place.state).copied() {
            let rows = kept.map(|kept| old(db, status, kept, place.last, most)).transpose()?.unwrap_or_default();
            if !rows.is_empty() {
                return Ok(rows);
            }
            *place = Place { state: place.state + 1, last: None };
        }
        Ok(Vec::new())
    }
}

/// Deletes, and tells where the next call goes on; from the start again when there was no more.
pub(super) fn prune(db: &Session<'_>, prune: &Prune) -> Result<(Pruned, Place)> {
    let started = Instant::now();
    let referrers = Referrers::find(db)?;
    let (mut pruned, mut place) = (Pruned::default(), prune.from);
    loop {
        let rows = prune.next(db, &mut place, STRIDE)?;
        if rows.is_empty() {
            return Ok((pruned, Place::default()));
        }
        for row in rows {
            if pruned.deleted >= prune.limit || (place != prune.from && started.elapsed() >= SLICE) {
                pruned.more = true;
                return Ok((pruned, place));
            }
            place.last = Some(row);
            match delete(db, &referrers, row.1)? {
                None => pruned.deleted += 1,
                Some(obstacle) => _ = pruned.obstacles.insert(obstacle),
            }
        }
    }
}

/// The answer where nothing is old enough.
pub(super) fn look(db: &Session<'_>, prune: &Prune) -> Result<Option<(Pruned, Place)>> {
    let mut place = prune.from;
    let nothing = prune.next(db, &mut place, 1)?.is_empty();
    Ok(nothing.then(|| (Pruned::default(), Place::default())))
}

/// All that is old enough now, by the query that deletes.
pub(super) fn prunable(db: &Session<'_>, retention: &Retention) -> Result<Selected> {
    let prune = Prune { retention: *retention, limit: usize::MAX, from: Place::default() };
    let mut jobs = Vec::new();
    for (status, kept) in prune.states() {
        let Some(kept) = kept else { continue };
        jobs.extend(old(db, status, kept, None, usize::MAX)?.into_iter().map(|(_, job)| job));
    }
    bulk_select::with_first_ids(db, jobs)
}

/// Why the job is still there, if it is.
pub(super) fn delete(db: &Session<'_>, referrers: &Referrers, job: JobRef) -> Result<Option<String>> {
    if let Some(table) = referrers.refer_to(db, job)? {
        return Ok(Some(format!(
            "table `{table}` refers to them, by a foreign key that says no ON DELETE SET NULL or CASCADE"
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
