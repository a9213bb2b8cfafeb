//! The reaper's verb: ends the attempts of dead workers and expired leases. running → failed, or dead; → pending if the
//! guest is proved not to have started.
//!
//! [`look`] reads the table and the worker files, without the write lock. [`rescue`] writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::attempts::{self, NewAttempt};
use super::end_attempt::{self, FailedAttempt};
use super::session::Session;
use super::worker_file::Notes;
use super::workers::{StoppedWorker, Workers};
use super::{daemons, row};
use crate::queue::retry::LossCause;
use crate::queue::{Id, JobRef, Lease, Outcome, Rescued, RetryPolicies, Status, Timestamp, WorkerName};

/// Running jobs, as [`read`] reads them.
macro_rules! running {
    ($which:literal) => {
        concat!(
            r#"SELECT seq, lease, id, type, worker, attempts, max_attempts, started_at FROM "jobs" INDEXED BY "jobs__lease""#,
            " WHERE status = 'running' AND ",
            $which
        )
    };
}

const EXPIRED: &str = running!("ifnull(lease_until, 0) <= ?1 ORDER BY ifnull(lease_until, 0) LIMIT ?2");

/// No daemon grants such a lease: the clock was ahead then, and has been set back.
const TOO_FAR_AHEAD: &str = running!("ifnull(lease_until, 0) > ?1 ORDER BY ifnull(lease_until, 0) LIMIT ?2");

/// Reads all running jobs: at most as many as the daemons have slots and have claimed ahead.
const OF_WORKER: &str = running!("worker = ?1 ORDER BY ifnull(lease_until, 0) LIMIT ?2");

/// A worker file of another boot may belong to a live daemon under another kernel. It counts as live if it announced itself
/// within this time.
const SILENCE: Duration = Duration::from_secs(60);

/// Which leases count as expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    /// Those that ended before this instant.
    pub(super) horizon: Timestamp,
    /// Those that end later than this from now: no daemon grants them.
    pub(super) max_lease: Duration,
}

/// What the worker files prove.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Workers that have stopped and left something, and whether they are proved dead.
    stopped: BTreeMap<String, bool>,
    /// The attempts that each worker has started.
    notes: HashMap<String, Notes>,
}

/// What a rescue did.
#[derive(Debug)]
pub(super) struct Rescue {
    /// The attempts that it ended.
    pub(super) rescued: Vec<Rescued>,
    /// Workers that have nothing left to rescue.
    finished: BTreeSet<String>,
}

impl Evidence {
    /// Adds a stopped worker. Skips a dead one whose notes cannot be read now.
    fn add(&mut self, worker: StoppedWorker) -> Option<StoppedWorker> {
        if worker.is_dead {
            match worker.notes() {
                Ok(notes) => _ = self.notes.insert(worker.name().to_owned(), notes),
                Err(error) => {
                    tracing::warn!("cannot read what the dead worker `{}` had started: {error}", worker.name());
                    return None;
                }
            }
        }
        self.stopped.insert(worker.name().to_owned(), worker.is_dead);
        Some(worker)
    }
}

impl Rescue {
    /// Removes the files of finished workers and releases the locks of all.
    pub(super) fn finish(self, stopped: Vec<StoppedWorker>) -> Vec<Rescued> {
        let is_finished = |worker: &&StoppedWorker| self.finished.contains(worker.name());
        stopped.iter().filter(is_finished).for_each(StoppedWorker::remove_file);
        self.rescued
    }
}

/// What there may be to rescue, and the workers whose locks are held for it; `None` if there is nothing.
///
/// Takes the locks before it reads, so that it sees a dead worker's last write.
pub(super) fn look(
    db: &Session<'_>,
    workers: &Workers,
    expiry: Option<Expiry>,
    limit: usize,
) -> Result<Option<(Evidence, Vec<StoppedWorker>)>> {
    let (mut evidence, mut stopped) = (Evidence::default(), Vec::new());
    for worker in workers.stopped() {
        match leftover(db, worker.name(), worker.is_dead)? {
            Leftover::Nothing => worker.remove_file(),
            Leftover::Unknown => {}
            Leftover::Announcement | Leftover::Jobs => stopped.extend(evidence.add(worker)),
        }
    }
    let expired = expired(db, expiry, limit)?;
    for worker in expired.iter().filter_map(|lost| lost.worker.as_ref()) {
        if !evidence.notes.contains_key(worker) {
            evidence.notes.extend(workers.notes_of(worker).map(|notes| (worker.clone(), notes)));
        }
    }
    Ok((!expired.is_empty() || !stopped.is_empty()).then_some((evidence, stopped)))
}

/// Ends at most `limit` attempts: first those whose lease expired (with `expiry`), then those of dead workers, the oldest leases first.
pub(super) fn rescue(
    db: &Session<'_>,
    policies: &RetryPolicies,
    evidence: &Evidence,
    expiry: Option<Expiry>,
    limit: usize,
) -> Result<Rescue> {
    let mut rescue = Rescue { rescued: Vec::new(), finished: BTreeSet::new() };
    for lost in expired(db, expiry, limit)? {
        rescue.rescued.extend(end(db, policies, evidence, lost)?);
    }
    for (worker, &is_dead) in &evidence.stopped {
        if is_dead {
            for lost in of_worker(db, worker, limit.saturating_sub(rescue.rescued.len()))? {
                rescue.rescued.extend(end(db, policies, evidence, lost)?);
            }
        }
        if matches!(leftover(db, worker, is_dead)?, Leftover::Nothing | Leftover::Announcement) {
            daemons::retire(db, worker)?;
            rescue.finished.insert(worker.clone());
        }
    }
    Ok(rescue)
}

/// Whether a running job is leased to this worker.
pub(super) fn holds_jobs(db: &Session<'_>, worker: &str) -> Result<bool> {
    Ok(!of_worker(db, worker, 1)?.is_empty())
}

/// What a stopped worker has left behind.
enum Leftover {
    Nothing,
    /// Only its row in the daemons table.
    Announcement,
    /// Running jobs.
    Jobs,
    /// It may be alive under another kernel. Its jobs wait for their leases to expire.
    Unknown,
}

fn leftover(db: &Session<'_>, worker: &str, is_dead: bool) -> Result<Leftover> {
    let holds_jobs = holds_jobs(db, worker)?;
    let silent_for = daemons::seen_at(db, worker)?.map(|seen_at| db.now().since(seen_at));
    let may_live = !is_dead && (holds_jobs || silent_for.is_some_and(|silent_for| silent_for < SILENCE));
    Ok(match silent_for {
        _ if may_live => Leftover::Unknown,
        _ if holds_jobs => Leftover::Jobs,
        Some(_) => Leftover::Announcement,
        None => Leftover::Nothing,
    })
}

/// Ends one attempt: lost, or released if its guest is proved not to have started.
fn end(db: &Session<'_>, policies: &RetryPolicies, evidence: &Evidence, lost: Lost) -> Result<Option<Rescued>> {
    let worker = lost.worker.as_deref().unwrap_or_default();
    let is_started = evidence.notes.get(worker).is_none_or(|notes| notes.has((lost.job.seq(), lost.token)));
    let status = if is_started {
        let is_dead = evidence.stopped.get(worker) == Some(&true);
        fail(db, policies, &lost, if is_dead { LossCause::WorkerDied } else { LossCause::LeaseExpired })?
    } else {
        let lease = Lease { job: lost.job, token: lost.token, worker: WorkerName::new(worker) };
        end_attempt::release(db, &[lease])?;
        Some(Status::Pending)
    };
    Ok(status.map(|status| Rescued { id: lost.id, job_type: lost.job_type, worker: lost.worker, status }))
}

fn fail(db: &Session<'_>, policies: &RetryPolicies, lost: &Lost, cause: LossCause) -> Result<Option<Status>> {
    let error = cause.error(lost.worker.as_deref());
    let started_at = lost.started_at.unwrap_or(db.now());
    let (job, token) = (lost.job, lost.token);
    let mut attempt = NewAttempt::without_receipt(job, token, lost.attempts, Outcome::Lost, started_at, db.now());
    attempt.error = Some(&error);
    let next = policies.after_loss(&lost.job_type, lost.attempts, lost.max_attempts, fastrand::f64());
    let failed = FailedAttempt { job, token, worker: None, attempt: attempt.attempt, started_at, error: &error, next };
    if end_attempt::fail_job(db, &failed)? == 0 {
        return Ok(None);
    }
    attempts::add(db, &attempt)?;
    Ok(Some(next.status()))
}

struct Lost {
    job: JobRef,
    token: i64,
    id: Id,
    job_type: String,
    worker: Option<String>,
    attempts: u32,
    max_attempts: Option<u32>,
    started_at: Option<Timestamp>,
}

fn expired(db: &Session<'_>, expiry: Option<Expiry>, limit: usize) -> Result<Vec<Lost>> {
    let Some(expiry) = expiry else { return Ok(Vec::new()) };
    let mut lost = db.all(EXPIRED, params![expiry.horizon.as_millis(), rows(limit)], read)?;
    if lost.len() < limit {
        let ahead = db.now().after(expiry.max_lease).as_millis();
        lost.extend(db.all(TOO_FAR_AHEAD, params![ahead, rows(limit - lost.len())], read)?);
    }
    Ok(lost)
}

fn of_worker(db: &Session<'_>, worker: &str, limit: usize) -> Result<Vec<Lost>> {
    db.all(OF_WORKER, params![worker, rows(limit)], read)
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn read(row: &Row<'_>) -> Result<Lost> {
    Ok(Lost {
        job: row::reference(row, 0)?,
        token: row.get(1)?,
        id: row::id(row, 2)?,
        job_type: row::text(row, 3)?,
        worker: row::optional_text(row, 4)?,
        attempts: row::small(row, 5)?,
        max_attempts: row::optional_small(row, 6)?,
        started_at: row::optional_instant(row, 7)?,
    })
}
