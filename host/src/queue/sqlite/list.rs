//! Lists of jobs, a page at a time: first the positions of the page's rows, then their columns.
//!
//! In order of insertion, the newest rows fill most pages, so those are scanned first. If they don't, the index of each
//! state is used. Only a rare type without a state scans the whole table. In order of end, an index has the jobs in that
//! order. In order of schedule, the indexes of waiting jobs are sorted, without reading rows.

use rusqlite::{Params, Result, Row, params};

use super::row::{self, job_columns, summary_columns};
use super::session::Session;
use super::started::StartNotes;
use super::workers::Workers;
use crate::queue::rows::Leased;
use crate::queue::{Filter, Job, JobRef, JobSummary, Order, Page, Position, Status, Timestamp};

const LAST: &str = r#"SELECT coalesce(max(seq), 0) FROM "jobs""#;

/// Rows that are scanned before an index is used: a few milliseconds.
const NEWEST: i64 = 10_000;

const INSERTED: &str = r#"
SELECT seq, NULL FROM "jobs" NOT INDEXED
WHERE seq >= ?1 AND seq < ?2 AND instr(?3, ' ' || status || ' ') AND (?4 IS NULL OR type = ?4)
ORDER BY seq DESC LIMIT ?5"#;

/// Jobs of the state `?1` and the type `?2`, from one of the indexes that a job of the state can be in.
macro_rules! from_index {
    ($select:literal, claim, $rest:literal) => {
        from_index!($select, "jobs__claim", "status IN ('pending', 'failed') AND deferred = 0", $rest)
    };
    ($select:literal, deferred, $rest:literal) => {
        from_index!($select, "jobs__deferred", "status IN ('pending', 'failed') AND deferred = 1", $rest)
    };
    ($select:literal, lease, $rest:literal) => {
        from_index!($select, "jobs__lease", "status = 'running'", $rest)
    };
    ($select:literal, done, $rest:literal) => {
        from_index!($select, "jobs__done", "(status = 'completed' OR status = 'dead' OR status = 'cancelled')", $rest)
    };
    ($select:literal, $index:literal, $states:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            r#" FROM "jobs" INDEXED BY ""#,
            $index,
            r#"" WHERE "#,
            $states,
            " AND status = ?1 AND (?2 IS NULL OR type = ?2) ",
            $rest
        )
    };
}

/// A statement for each index that a job of a state can be in.
struct ByState {
    waiting: [&'static str; 2],
    running: [&'static str; 1],
    ended: [&'static str; 1],
}

macro_rules! by_state {
    ($select:literal, $rest:literal) => {
        ByState {
            waiting: [from_index!($select, claim, $rest), from_index!($select, deferred, $rest)],
            running: [from_index!($select, lease, $rest)],
            ended: [from_index!($select, done, $rest)],
        }
    };
}

static INSERTED_IN: ByState = by_state!("seq, NULL", "AND seq < ?3 ORDER BY seq DESC LIMIT ?4");

static SCHEDULED: ByState = by_state!(
    "seq, scheduled_at",
    "AND scheduled_at >= ?3 AND (scheduled_at > ?3 OR seq > ?4) ORDER BY scheduled_at, seq LIMIT ?5"
);

const ENDED: &str = from_index!(
    "seq, completed_at",
    done,
    "AND completed_at <= ?3 AND (completed_at < ?3 OR seq < ?4) ORDER BY completed_at DESC, seq DESC LIMIT ?5"
);

/// Only other programs leave such jobs. They come last.
const ENDED_AT_NO_TIME: &str =
    from_index!("seq, completed_at", done, "AND completed_at IS NULL AND seq < ?3 ORDER BY seq DESC LIMIT ?4");

static MATCHING: ByState = by_state!("seq", "LIMIT ?3");

const MATCHING_OF_TYPE: &str = r#"SELECT seq FROM "jobs" NOT INDEXED WHERE type = ?1 LIMIT ?2"#;

const ALL: &str = r#"SELECT count(*) FROM "jobs""#;

const JOB: &str = concat!("SELECT ", job_columns!(), r#" FROM "jobs" WHERE seq = ?1"#);

const SUMMARY: &str = concat!("SELECT ", summary_columns!(), r#" FROM "jobs" WHERE seq = ?1"#);

impl ByState {
    fn of(&'static self, status: Status) -> &'static [&'static str] {
        match status {
            Status::Pending | Status::Failed => &self.waiting,
            Status::Running => &self.running,
            Status::Completed | Status::Dead | Status::Cancelled => &self.ended,
        }
    }
}

pub(super) fn jobs(db: &Session<'_>, workers: &Workers, filter: &Filter) -> Result<Page<Job>> {
    page(db, workers, filter, |job| db.first(JOB, [job.seq()], row::job))
}

pub(super) fn summaries(db: &Session<'_>, workers: &Workers, filter: &Filter) -> Result<Page<JobSummary>> {
    page(db, workers, filter, |job| db.first(SUMMARY, [job.seq()], row::summary))
}

fn page<J: Leased>(
    db: &Session<'_>,
    workers: &Workers,
    filter: &Filter,
    read: impl Fn(JobRef) -> Result<Option<J>>,
) -> Result<Page<J>> {
    let notes = StartNotes::of(workers);
    let (mut jobs, mut rest) = (Vec::new(), filter.clone());
    loop {
        let positions = positions(db, &rest)?;
        let is_last = positions.len() < rest.limit;
        rest.after = positions.last().copied().filter(|_| !is_last);
        for position in positions {
            let shown = read(position.job)?.map(|job| notes.show(job));
            jobs.extend(shown.filter(|job| filter.names(job.status())));
        }
        rest.limit = filter.limit.saturating_sub(jobs.len());
        if rest.after.is_none() || rest.limit == 0 {
            return Ok(Page { jobs, next: rest.after });
        }
    }
}

/// The next rows by their stored state. A few may be shown in another state.
fn positions(db: &Session<'_>, filter: &Filter) -> Result<Vec<Position>> {
    match filter.order {
        Order::Created => by_insertion(db, filter),
        Order::Ended => by_end(db, filter),
        Order::Scheduled => by_schedule(db, filter),
    }
}

fn by_insertion(db: &Session<'_>, filter: &Filter) -> Result<Vec<Position>> {
    let last = db.first(LAST, [], |row| row.get::<_, i64>(0))?.unwrap_or(0);
    let before = filter.after.map_or(i64::MAX, |after| after.job.seq());
    let from = before.min(last.saturating_add(1)).saturating_sub(NEWEST);
    let states: String = filter.stored_states().map(|status| format!(" {status} ")).collect();
    let inserted = |from: i64| read(db, INSERTED, params![from, before, states, filter.job_type, limit(filter.limit)]);
    let newest = inserted(from)?;
    if newest.len() >= filter.limit || from <= 0 {
        return Ok(newest);
    }
    if filter.states.is_empty() {
        return inserted(i64::MIN);
    }
    let mut found = Vec::new();
    for status in filter.stored_states() {
        for sql in INSERTED_IN.of(status) {
            let wanted = params![status.as_str(), filter.job_type, before, limit(filter.limit)];
            found.extend(read(db, sql, wanted)?);
        }
    }
    found.sort_by_key(|position| std::cmp::Reverse(position.job));
    found.truncate(filter.limit);
    Ok(found)
}

fn by_end(db: &Session<'_>, filter: &Filter) -> Result<Vec<Position>> {
    let (at, before) = match filter.after {
        Some(Position { at, job }) => (at.map(Timestamp::as_millis), job.seq()),
        None => (Some(i64::MAX), i64::MAX),
    };
    let mut found = Vec::new();
    for status in filter.stored_states() {
        let mut of_state = Vec::new();
        if let Some(at) = at {
            let wanted = params![status.as_str(), filter.job_type, at, before, limit(filter.limit)];
            of_state = read(db, ENDED, wanted)?;
        }
        let room = filter.limit.saturating_sub(of_state.len());
        if room > 0 {
            let before = if at.is_some() { i64::MAX } else { before };
            let wanted = params![status.as_str(), filter.job_type, before, limit(room)];
            of_state.extend(read(db, ENDED_AT_NO_TIME, wanted)?);
        }
        found.extend(of_state);
    }
    found.sort_by_key(|position| std::cmp::Reverse((position.at, position.job)));
    found.truncate(filter.limit);
    Ok(found)
}

fn by_schedule(db: &Session<'_>, filter: &Filter) -> Result<Vec<Position>> {
    let (at, after) = match filter.after {
        Some(Position { at, job }) => (at.map_or(i64::MIN, Timestamp::as_millis), job.seq()),
        None => (i64::MIN, i64::MIN),
    };
    let mut found = Vec::new();
    for status in filter.stored_states() {
        for sql in SCHEDULED.of(status) {
            let wanted = params![status.as_str(), filter.job_type, at, after, limit(filter.limit)];
            found.extend(read(db, sql, wanted)?);
        }
    }
    found.sort_by_key(|position| (position.at, position.job));
    found.truncate(filter.limit);
    Ok(found)
}

/// The number of jobs that match the filter, at most `most`. Running jobs are few and are read one by one.
pub(super) fn matching(db: &Session<'_>, workers: &Workers, filter: &Filter, most: usize) -> Result<usize> {
    if filter.states.is_empty() && filter.order == Order::Created {
        let Some(job_type) = &filter.job_type else {
            return Ok(db
                .first(ALL, [], |row| row.get(0))?
                .map_or(0, |all: i64| usize::try_from(all).unwrap_or(0).min(most)));
        };
        return Ok(db.all(MATCHING_OF_TYPE, params![job_type, limit(most)], |_| Ok(()))?.len());
    }
    let notes = StartNotes::of(workers);
    let mut found = 0;
    for status in filter.stored_states() {
        for sql in MATCHING.of(status) {
            let room = limit(most.saturating_sub(found));
            let jobs = db.all(sql, params![status.as_str(), filter.job_type, room], |row| row::reference(row, 0))?;
            if status != Status::Running {
                found += jobs.len();
                continue;
            }
            for job in jobs {
                let job = db.first(SUMMARY, [job.seq()], row::summary)?.map(|job| notes.show(job));
                found += usize::from(job.is_some_and(|job| filter.names(job.status)));
            }
        }
    }
    Ok(found.min(most))
}

fn read(db: &Session<'_>, sql: &'static str, wanted: impl Params) -> Result<Vec<Position>> {
    let position = |row: &Row<'_>| Ok(Position { at: row::optional_instant(row, 1)?, job: row::reference(row, 0)? });
    db.all(sql, wanted, position)
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
