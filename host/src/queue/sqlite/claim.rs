//! Claim: pending, failed → running.
//!
//! The index is by type, priority and time, so that a scan stops at the first job that is not due and never reads one of
//! another type. A [`TypeScan`] reads one type; the claim merges the scans and leases the first job of all, one by one.
//!
//! Jobs that are not due are `deferred` and have an index of their own, by time. A claim first promotes those that are due
//! now. A foreign program can't defer what it adds for later, so a scan meets such jobs, at most one for each priority. If a
//! scan meets many, the claim defers them.

use std::collections::VecDeque;
use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::row;
use super::session::Session;
use crate::queue::{Claim, Claimed, Claims, JobRef, Lease, Timestamp, Want};

/// The first job with the next lower priority.
const NEXT_PRIORITY: &str = r#"
SELECT priority, scheduled_at, seq FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed') AND deferred = 0 AND type = ?1 AND priority < ?2
ORDER BY priority DESC, scheduled_at, seq LIMIT 1"#;

/// The first jobs of a priority.
const OF_PRIORITY: &str = r#"
SELECT priority, scheduled_at, seq FROM "jobs" INDEXED BY "jobs__claim"
WHERE status IN ('pending', 'failed') AND deferred = 0 AND type = ?1 AND priority = ?2
ORDER BY scheduled_at, seq LIMIT ?3"#;

/// Deferred jobs that are due.
const DEFERRED_DUE: &str = r#"
SELECT seq FROM "jobs" INDEXED BY "jobs__deferred"
WHERE status IN ('pending', 'failed') AND deferred = 1 AND type = ?1 AND scheduled_at <= ?2
ORDER BY scheduled_at, seq LIMIT ?3"#;

/// When the first deferred job is due.
const NEXT_DEFERRED: &str = r#"
SELECT scheduled_at FROM "jobs" INDEXED BY "jobs__deferred"
WHERE status IN ('pending', 'failed') AND deferred = 1 AND type = ?1
ORDER BY scheduled_at LIMIT 1"#;

/// The row keeps its size, so SQLite overwrites it in place.
const SET_DEFERRED: &str = r#"UPDATE "jobs" SET deferred = ?2 WHERE seq = ?1 AND status IN ('pending', 'failed')"#;

/// The most jobs that one claim promotes or defers, earliest first: some milliseconds. If more are due at once, the order of
/// claims holds among those promoted.
const MAX_MOVED: usize = 1000;

/// A claim defers jobs that are not due if the scan of a type meets more than this.
const TOLERATED: usize = 16;

const READ: &str = r#"
SELECT lease, id, payload, attempts, max_attempts, timeout_ms FROM "jobs"
WHERE seq = ?1 AND lease < 9223372036854775807"#;

/// Without RETURNING, which buffers in a temporary table and costs more than a read before.
const LEASE: &str = r#"
UPDATE "jobs"
SET status = 'running', lease = ?2, lease_until = ?3, worker = ?4, started_at = ?5,
    progress_percent = NULL, progress_message = NULL
WHERE seq = ?1 AND status IN ('pending', 'failed')"#;

/// For a row that a foreign program gave the highest token: no later lease could be told from it.
const CANCEL_EXHAUSTED: &str = r#"
UPDATE "jobs"
SET status = 'cancelled', completed_at = ?2, error = 'its fencing token cannot grow any further'
WHERE seq = ?1 AND status IN ('pending', 'failed') AND lease = 9223372036854775807"#;

pub(super) fn claim(db: &Session<'_>, claim: &Claim) -> Result<Claims> {
    promote_due(db, claim)?;
    let mut scans = open_scans(db, claim)?;
    let mut free = claim.slots;
    let mut jobs = Vec::new();
    while let Some(scan) = next_scan(&mut scans, free) {
        jobs.extend(scan.lease_first(db, claim, &mut free)?);
    }
    defer_not_due(db, &scans)?;
    Ok(Claims { jobs, next_due: next_due(db, &scans) })
}

/// The result if nothing is due and nothing is to be promoted or deferred.
pub(super) fn look(db: &Session<'_>, claim: &Claim) -> Result<Option<Claims>> {
    let mut scans = open_scans(db, claim)?;
    let is_deferred_due = scans.iter().any(|scan| scan.next_due.is_some_and(|instant| instant <= db.now()));
    let are_many_not_due = scans.iter().any(|scan| scan.not_due.len() > TOLERATED);
    let is_due = is_deferred_due || next_scan(&mut scans, claim.slots).is_some();
    Ok((!is_due && !are_many_not_due).then(|| Claims { jobs: Vec::new(), next_due: next_due(db, &scans) }))
}

/// Makes deferred jobs of the wanted types that are due now ready to be claimed.
fn promote_due(db: &Session<'_>, claim: &Claim) -> Result<()> {
    let wanted: Vec<&Want> = wanted(claim).collect();
    let most = MAX_MOVED.div_ceil(wanted.len().max(1));
    for want in wanted {
        let (name, now, most) = (want.job_type.as_str(), db.now().as_millis(), i64::try_from(most).unwrap_or(i64::MAX));
        for seq in db.all(DEFERRED_DUE, params![name, now, most], |row| row.get::<_, i64>(0))? {
            db.execute(SET_DEFERRED, (seq, false))?;
        }
    }
    Ok(())
}

/// Defers the jobs that a scan met although they are not due, if there are many.
fn defer_not_due(db: &Session<'_>, scans: &[TypeScan]) -> Result<()> {
    let many = scans.iter().filter(|scan| scan.not_due.len() > TOLERATED);
    for seq in many.flat_map(|scan| &scan.not_due).take(MAX_MOVED) {
        db.execute(SET_DEFERRED, (*seq, true))?;
    }
    Ok(())
}

fn wanted(claim: &Claim) -> impl Iterator<Item = &Want> {
    claim.wants.iter().filter(|want| want.is_open(claim.slots))
}

fn open_scans(db: &Session<'_>, claim: &Claim) -> Result<Vec<TypeScan>> {
    wanted(claim).map(|want| TypeScan::open(db, want.clone(), claim.slots)).collect()
}

/// The scan whose first job comes next, among the types that may take one with this many free slots.
fn next_scan(scans: &mut [TypeScan], free: usize) -> Option<&mut TypeScan> {
    let open = scans.iter_mut().filter(|scan| scan.want.is_open(free) && scan.first().is_some());
    open.min_by_key(|scan| scan.first())
}

fn next_due(db: &Session<'_>, scans: &[TypeScan]) -> Option<Duration> {
    let exhausted = scans.iter().filter(|scan| scan.is_exhausted);
    exhausted.filter_map(|scan| scan.next_due).min().map(|instant| instant.since(db.now()))
}

/// The position of a waiting job in the order of claims: highest priority first, then by time, then by insertion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimPosition {
    inverse_priority: i64,
    scheduled_at: Timestamp,
    seq: i64,
}

impl ClaimPosition {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            inverse_priority: -row.get::<_, i64>(0)?,
            scheduled_at: Timestamp::from_millis(row.get(1)?),
            seq: row.get(2)?,
        })
    }
}

/// Reads the due jobs of one wanted type in order, no further than needed.
struct TypeScan {
    /// How many may still be taken.
    want: Want,
    ready: VecDeque<ClaimPosition>,
    /// How many were read last. Doubles, so that little is read in vain.
    stride: usize,
    /// The priority being read. All higher ones are done.
    priority: i64,
    /// Whether `priority` may have more jobs.
    open: bool,
    /// When the earliest job that is not due, deferred or met, will be due.
    next_due: Option<Timestamp>,
    /// Jobs that were met although they are not due, up to `MAX_MOVED`.
    not_due: Vec<i64>,
    /// Whether every due job has been read.
    is_exhausted: bool,
}

impl TypeScan {
    fn open(db: &Session<'_>, want: Want, free: usize) -> Result<Self> {
        let above_all = i64::from(i16::MAX) + 1;
        let next_due = db.first(NEXT_DEFERRED, [want.job_type.as_str()], |row| row::instant(row, 0))?;
        let mut scan = Self {
            want,
            ready: VecDeque::new(),
            stride: 1,
            priority: above_all,
            open: false,
            next_due,
            not_due: Vec::new(),
            is_exhausted: false,
        };
        scan.read_on(db, free)?;
        Ok(scan)
    }

    fn first(&self) -> Option<ClaimPosition> {
        self.ready.front().copied()
    }

    /// Leases the first job; `None` if it can never be leased.
    fn lease_first(&mut self, db: &Session<'_>, claim: &Claim, free: &mut usize) -> Result<Option<Claimed>> {
        let Some(first) = self.ready.pop_front() else { return Ok(None) };
        let job = lease(db, claim, &self.want, first.seq)?;
        match job {
            Some(_) => self.want.take_one(free),
            None => _ = db.execute(CANCEL_EXHAUSTED, params![first.seq, db.now().as_millis()])?,
        }
        let wants_more = self.want.slots > 0 || self.want.ahead > 0;
        if wants_more && self.ready.is_empty() {
            self.read_on(db, *free)?;
        }
        Ok(job)
    }

    /// Reads the next due jobs. Those read before are leased by now, and out of the index.
    fn read_on(&mut self, db: &Session<'_>, free: usize) -> Result<()> {
        while self.ready.is_empty() {
            let job_type = self.want.job_type.as_str();
            let found = if self.open {
                self.stride = (self.stride * 2).min(self.want.most(free)).max(1);
                let limit = i64::try_from(self.stride).unwrap_or(i64::MAX);
                db.all(OF_PRIORITY, params![job_type, self.priority, limit], ClaimPosition::read)?
            } else {
                self.stride = 1;
                db.all(NEXT_PRIORITY, params![job_type, self.priority], ClaimPosition::read)?
            };
            if found.is_empty() && !self.open {
                self.is_exhausted = true;
                return Ok(());
            }
            self.open = found.len() == self.stride;
            for job in found {
                self.priority = -job.inverse_priority;
                if job.scheduled_at <= db.now() {
                    self.ready.push_back(job);
                } else {
                    self.next_due = Some(self.next_due.map_or(job.scheduled_at, |known| known.min(job.scheduled_at)));
                    if self.not_due.len() < MAX_MOVED {
                        self.not_due.push(job.seq);
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
