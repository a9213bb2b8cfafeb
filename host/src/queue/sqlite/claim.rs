//! A worker takes due jobs: pending, failed → running.
//!
//! The index leads with type and priority, and within them follows time, so that the walk stops at the first job that is not
//! due and never meets one of another type. A [`Line`] walks one type; the front of all lines is claimed, job by job.
//!
//! Jobs that are not due are `deferred` and stand in an index of their own, by time: whoever makes one that is due later puts it
//! there, and a claim first takes out what has come due. What a foreign program adds for later stands in the way, once for each
//! priority; where that is often, a claim puts those that it met aside.

use std::collections::VecDeque;
use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::row;
use super::session::Session;
use crate::queue::{Claim, Claimed, Claims, JobRef, Lease, Timestamp, Want};

/// The first of those with the next lower priority.
const NEXT_PRIORITY: &str = r#"
SELECT priority, scheduled_at, seq FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed') AND deferred = 0 AND type = ?1 AND priority < ?2
ORDER BY priority DESC, scheduled_at, seq LIMIT 1"#;

/// The first ones of a priority.
const OF_PRIORITY: &str = r#"
SELECT priority, scheduled_at, seq FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed') AND deferred = 0 AND type = ?1 AND priority = ?2
ORDER BY scheduled_at, seq LIMIT ?3"#;

/// Deferred ones that have come due.
const COME_DUE: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__deferred"
WHERE status IN ('pending', 'failed') AND deferred = 1 AND type = ?1 AND scheduled_at <= ?2
ORDER BY scheduled_at, seq LIMIT ?3"#;

/// When the first deferred one is due.
const NEXT_DEFERRED: &str = r#"
SELECT scheduled_at FROM "jobs" INDEXED BY "jobs__deferred"
WHERE status IN ('pending', 'failed') AND deferred = 1 AND type = ?1
ORDER BY scheduled_at LIMIT 1"#;

/// The record keeps its size, and is written over in its place.
const DEFER: &str = r#"UPDATE "jobs" SET deferred = ?2 WHERE seq = ?1 AND status IN ('pending', 'failed')"#;

/// So many jobs are taken out of the deferred ones or put there by a claim at the most, those that are due first before the others:
/// some milliseconds. Where more come due at once, the order of claims holds among those that were taken out.
const MOST_MOVED: usize = 1000;

/// So many priorities with jobs that are not due may stand in the way of a type.
const TOLERATED: usize = 16;

const READ: &str = r#"
SELECT lease, id, payload, attempts, max_attempts, timeout_ms FROM "jobs"
WHERE seq = ?1 AND lease < 9223372036854775807"#;

/// Not with RETURNING, which buffers in a temporary table and costs more than reading first.
const LEASE: &str = r#"
UPDATE "jobs"
SET status = 'running', lease = ?2, lease_until = ?3, worker = ?4, started_at = ?5,
    progress_percent = NULL, progress_message = NULL
WHERE seq = ?1 AND status IN ('pending', 'failed')"#;

/// For a row to which somebody gave the last lease there is: no worker could ever be told from another.
const BURY: &str = r#"
UPDATE "jobs"
SET status = 'cancelled', completed_at = ?2, error = 'its fencing token cannot grow any further'
WHERE seq = ?1 AND status IN ('pending', 'failed') AND lease = 9223372036854775807"#;

pub(super) fn claim(db: &Session<'_>, claim: &Claim) -> Result<Claims> {
    take_out_what_is_due(db, claim)?;
    let mut lines = open_lines(db, claim)?;
    let mut free = claim.slots;
    let mut jobs = Vec::new();
    while let Some(line) = next_line(&mut lines, free) {
        jobs.extend(line.lease_front(db, claim, &mut free)?);
    }
    put_aside(db, &lines)?;
    Ok(Claims { jobs, next_due: next_due(db, &lines) })
}

/// The answer where nothing is due and nothing stands in the way.
pub(super) fn look(db: &Session<'_>, claim: &Claim) -> Result<Option<Claims>> {
    let mut lines = open_lines(db, claim)?;
    let has_come_due = lines.iter().any(|line| line.next_due.is_some_and(|instant| instant <= db.now()));
    let is_in_the_way = lines.iter().any(|line| line.not_due.len() > TOLERATED);
    let is_due = has_come_due || next_line(&mut lines, claim.slots).is_some();
    Ok((!is_due && !is_in_the_way).then(|| Claims { jobs: Vec::new(), next_due: next_due(db, &lines) }))
}

/// Makes deferred jobs of the wanted types that have come due ready to be claimed.
fn take_out_what_is_due(db: &Session<'_>, claim: &Claim) -> Result<()> {
    let wanted: Vec<&Want> = wanted(claim).collect();
    let most = MOST_MOVED.div_ceil(wanted.len().max(1));
    for want in wanted {
        let (name, now, most) = (want.job_type.as_str(), db.now().as_millis(), i64::try_from(most).unwrap_or(i64::MAX));
        for seq in db.all(COME_DUE, params![name, now, most], |row| row.get::<_, i64>(0))? {
            db.execute(DEFER, (seq, false))?;
        }
    }
    Ok(())
}

/// Defers jobs that a claim has met although they are not due, where there are many.
fn put_aside(db: &Session<'_>, lines: &[Line]) -> Result<()> {
    let crowded = lines.iter().filter(|line| line.not_due.len() > TOLERATED);
    for seq in crowded.flat_map(|line| &line.not_due).take(MOST_MOVED) {
        db.execute(DEFER, (*seq, true))?;
    }
    Ok(())
}

fn wanted(claim: &Claim) -> impl Iterator<Item = &Want> {
    claim.wants.iter().filter(|want| want.is_open(claim.slots))
}

fn open_lines(db: &Session<'_>, claim: &Claim) -> Result<Vec<Line>> {
    wanted(claim).map(|want| Line::open(db, want.clone(), claim.slots)).collect()
}

/// The line whose front comes next, of those that may take it beside so many free slots.
fn next_line(lines: &mut [Line], free: usize) -> Option<&mut Line> {
    let open = lines.iter_mut().filter(|line| line.want.is_open(free) && line.front().is_some());
    open.min_by_key(|line| line.front())
}

fn next_due(db: &Session<'_>, lines: &[Line]) -> Option<Duration> {
    let walked = lines.iter().filter(|line| line.is_walked);
    walked.filter_map(|line| line.next_due).min().map(|instant| instant.since(db.now()))
}

/// A waiting job's place in the order of claims: by priority, the highest first, then by time, then by insertion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    inverse_priority: i64,
    scheduled_at: Timestamp,
    seq: i64,
}

impl Spot {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            inverse_priority: -row.get::<_, i64>(0)?,
            scheduled_at: Timestamp::from_millis(row.get(1)?),
            seq: row.get(2)?,
        })
    }
}

/// The due jobs of one wanted type, in order, read as far as they are needed.
struct Line {
    /// What of it may still be taken.
    want: Want,
    ready: VecDeque<Spot>,
    /// How many were read the last time; doubles, so that little is read in vain.
    stride: usize,
    /// The priority that is being walked; all higher ones are done.
    priority: i64,
    /// Whether `priority` may have more than was read.
    open: bool,
    /// The earliest that is deferred, or was met and is not due.
    next_due: Option<Timestamp>,
    /// Those that were met although they are not due, as many as may be put aside.
    not_due: Vec<i64>,
    /// Whether everything that is due has been met.
    is_walked: bool,
}

impl Line {
    fn open(db: &Session<'_>, want: Want, free: usize) -> Result<Self> {
        let above_all = i64::from(i16::MAX) + 1;
        let next_due = db.first(NEXT_DEFERRED, [want.job_type.as_str()], |row| row::instant(row, 0))?;
        let mut line = Self {
            want,
            ready: VecDeque::new(),
            stride: 1,
            priority: above_all,
            open: false,
            next_due,
            not_due: Vec::new(),
            is_walked: false,
        };
        line.read_on(db, free)?;
        Ok(line)
    }

    fn front(&self) -> Option<Spot> {
        self.ready.front().copied()
    }

    /// Leases the job in front; `None` where it cannot be leased and never will.
    fn lease_front(&mut self, db: &Session<'_>, claim: &Claim, free: &mut usize) -> Result<Option<Claimed>> {
        let Some(spot) = self.ready.pop_front() else { return Ok(None) };
        let job = lease(db, claim, &self.want, spot.seq)?;
        match job {
            Some(_) => self.want.take_one(free),
            None => _ = db.execute(BURY, params![spot.seq, db.now().as_millis()])?,
        }
        let wants_more = self.want.slots > 0 || self.want.ahead > 0;
        if wants_more && self.ready.is_empty() {
            self.read_on(db, *free)?;
        }
        Ok(job)
    }

    /// Finds the next that are due. What was ready before is leased by now and out of the index.
    fn read_on(&mut self, db: &Session<'_>, free: usize) -> Result<()> {
        while self.ready.is_empty() {
            let job_type = self.want.job_type.as_str();
            let spots = if self.open {
                self.stride = (self.stride * 2).min(self.want.most(free)).max(1);
                let limit = i64::try_from(self.stride).unwrap_or(i64::MAX);
                db.all(OF_PRIORITY, params![job_type, self.priority, limit], Spot::read)?
            } else {
                self.stride = 1;
                db.all(NEXT_PRIORITY, params![job_type, self.priority], Spot::read)?
            };
            if spots.is_empty() && !self.open {
                self.is_walked = true;
                return Ok(());
            }
            self.open = spots.len() == self.stride;
            for spot in spots {
                self.priority = -spot.inverse_priority;
                if spot.scheduled_at <= db.now() {
                    self.ready.push_back(spot);
                } else {
                    self.next_due = Some(self.next_due.map_or(spot.scheduled_at, |known| known.min(spot.scheduled_at)));
                    if self.not_due.len() < MOST_MOVED {
                        self.not_due.push(spot.seq);
                    }
                    self.open = false;
                    break;
                }
            }
        }
        Ok(())
    }
}

fn lease(db: &Session<'_>, claim: &Claim, want: &Want, seq: i64) -> Result<Option<Claimed>> {
    let job = db.first(READ, [seq], |row| {
        Ok(Claimed {
            lease: Lease {
                job: JobRef::from_seq(seq),
                token: row.get::<_, i64>(0)?.saturating_add(1),
                worker: claim.worker.clone(),
            },
            id: row::id(row, 1)?,
            job_type: want.job_type.clone(),
            payload: std::str::from_utf8(row.get_ref(2)?.as_bytes()?).map(str::to_owned),
            attempt: row::small(row, 3)?.saturating_add(1),
            max_attempts: row::optional_small(row, 4)?,
            timeout: row::optional_duration(row, 5)?,
        })
    })?;
    let Some(job) = job else { return Ok(None) };
    let now = db.now();
    let until = now.after(claim.lease).as_millis();
    let leased = db.execute(LEASE, params![seq, job.lease.token, until, claim.worker.as_str(), now.as_millis()])?;
    Ok((leased > 0).then_some(job))
}
