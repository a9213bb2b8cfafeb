//! Attempts that nobody will end any more: running → failed, or dead; → pending, where the guest is proved not to have started.
//!
//! [`look`] finds out whether there are any and asks the files of the workers, without the database's lock; [`rescue`] writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::fail::{self, Settled};
use super::ledger::{self, Entry};
use super::session::Session;
use super::worker_file::Notes;
use super::workers::{StoppedWorker, Workers};
use super::{daemons, release, row};
use crate::queue::lost::{self, Proof};
use crate::queue::{Id, JobRef, Lease, Next, Outcome, Recorded, Rescued, RetryPolicies, Status, Timestamp, WorkerName};

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

/// No daemon grants such a lease: the clock was ahead when it was granted, and has been set back.
const TOO_FAR_AHEAD: &str = running!("ifnull(lease_until, 0) > ?1 ORDER BY ifnull(lease_until, 0) LIMIT ?2");

/// Walks all that run, which are no more than the daemons have slots and have claimed ahead.
const OF_WORKER: &str = running!("worker = ?1 ORDER BY ifnull(lease_until, 0) LIMIT ?2");

/// A worker of another boot whose daemon was heard of since then may live under another kernel.
const SILENCE: Duration = Duration::from_secs(60);

/// Which leases are over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    /// Those that had expired at this instant.
    pub(super) horizon: Timestamp,
    /// Those that hold for longer than this from now on.
    pub(super) max_lease: Duration,
}

/// What the files of the workers say about the attempts that may have to be ended.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Workers that have stopped and left something, by name, and whether they are proved dead.
    stopped: BTreeMap<String, bool>,
    /// What workers have started, by their names.
    notes: HashMap<String, Notes>,
}

/// What a rescue did.
#[derive(Debug)]
pub(super) struct Rescue {
    /// The attempts that it ended.
    pub(super) rescued: Vec<Rescued>,
    /// The workers that have left nothing any more.
    settled: BTreeSet<String>,
}

impl Findings {
    /// Takes in a worker that has stopped; gives it up where it is dead and its notes cannot be read now.
    fn take(&mut self, worker: StoppedWorker) -> Option<StoppedWorker> {
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
    /// Removes the files of workers that have left nothing any more, and releases the locks of all.
    pub(super) fn conclude(self, stopped: Vec<StoppedWorker>) -> Vec<Rescued> {
        let is_settled = |worker: &&StoppedWorker| self.settled.contains(worker.name());
        stopped.iter().filter(is_settled).for_each(StoppedWorker::forget);
        self.rescued
    }
}

/// What there may be to rescue, and the workers whose locks were taken for it; `None` where nothing is.
///
/// It asks for the locks before it reads: a dead worker's last write is then seen.
pub(super) fn look(
    db: &Session<'_>,
    workers: &Workers,
    over: Option<Over>,
    limit: usize,
) -> Result<Option<(Findings, Vec<StoppedWorker>)>> {
    let (mut findings, mut stopped) = (Findings::default(), Vec::new());
    for worker in workers.stopped() {
        match left_by(db, worker.name(), worker.is_dead)? {
            Left::Nothing => worker.forget(),
            Left::Unknown => {}
            Left::Report | Left::Jobs => stopped.extend(findings.take(worker)),
        }
    }
    let overdue = overdue(db, over, limit)?;
    for worker in overdue.iter().filter_map(|lost| lost.worker.as_ref()) {
        if !findings.notes.contains_key(worker) {
            findings.notes.extend(workers.notes_of(worker).map(|notes| (worker.clone(), notes)));
        }
    }
    Ok((!overdue.is_empty() || !stopped.is_empty()).then_some((findings, stopped)))
}

/// Ends at most `limit` attempts: those whose lease is `over`, where that is asked for, then those of dead workers, the oldest leases first.
pub(super) fn rescue(
    db: &Session<'_>,
    policies: &RetryPolicies,
    findings: &Findings,
    over: Option<Over>,
    limit: usize,
) -> Result<Rescue> {
    let mut rescue = Rescue { rescued: Vec::new(), settled: BTreeSet::new() };
    for lost in overdue(db, over, limit)? {
        rescue.rescued.extend(end(db, policies, findings, lost)?);
    }
    for (worker, &is_dead) in &findings.stopped {
        if is_dead {
            for lost in of_worker(db, worker, limit.saturating_sub(rescue.rescued.len()))? {
                rescue.rescued.extend(end(db, policies, findings, lost)?);
            }
        }
        if matches!(left_by(db, worker, is_dead)?, Left::Nothing | Left::Report) {
            daemons::retire(db, worker)?;
            rescue.settled.insert(worker.clone());
        }
    }
    Ok(rescue)
}

/// Whether jobs are running that this worker has claimed.
pub(super) fn holds_jobs(db: &Session<'_>, worker: &str) -> Result<bool> {
    Ok(!of_worker(db, worker, 1)?.is_empty())
}

/// What a worker that has stopped has left.
enum Left {
    Nothing,
    /// Only what it said about itself.
    Report,
    /// Jobs that nobody else runs.
    Jobs,
    /// It may live under another kernel; its jobs wait for their leases.
    Unknown,
}

fn left_by(db: &Session<'_>, worker: &str, is_dead: bool) -> Result<Left> {
    let holds_jobs = holds_jobs(db, worker)?;
    let silent_for = daemons::seen_at(db, worker)?.map(|seen_at| db.now().since(seen_at));
    let may_live = !is_dead && (holds_jobs || silent_for.is_some_and(|silent_for| silent_for < SILENCE));
    Ok(match silent_for {
        _ if may_live => Left::Unknown,
        _ if holds_jobs => Left::Jobs,
        Some(_) => Left::Report,
        None => Left::Nothing,
    })
}

/// Ends one attempt: lost, or as if it had never been where its guest is proved not to have started.
fn end(db: &Session<'_>, policies: &RetryPolicies, findings: &Findings, lost: Lost) -> Result<Option<Rescued>> {
    let worker = lost.worker.as_deref().unwrap_or_default();
    let is_started = findings.notes.get(worker).is_none_or(|notes| notes.has((lost.job.seq(), lost.token)));
    let status = if is_started {
        let is_dead = findings.stopped.get(worker) == Some(&true);
        fail(db, policies, &lost, if is_dead { Proof::Death } else { Proof::Lease })?
    } else {
        let lease = Lease { job: lost.job, token: lost.token, worker: WorkerName::new(worker) };
        release::release(db, &[lease])?;
        Some(Status::Pending)
    };
    Ok(status.map(|status| Rescued { id: lost.id, job_type: lost.job_type, worker: lost.worker, status }))
}

fn fail(db: &Session<'_>, policies: &RetryPolicies, lost: &Lost, proof: Proof) -> Result<Option<Status>> {
    let error = lost::error(lost.worker.as_deref(), proof);
    let started_at = lost.started_at.unwrap_or(db.now());
    let mut entry = Entry::without_receipt(lost.job, lost.token, lost.attempts, Outcome::Lost, started_at, db.now());
    entry.error = Some(&error);
    let next = policies.after_loss(&lost.job_type, lost.attempts, lost.max_attempts, fastrand::f64());
    let (job, token, attempt) = (lost.job, lost.token, entry.attempt);
    let settled = Settled { job, token, worker: None, attempt, started_at, error: &error, next };
    if fail::settle(db, &settled)? != Recorded::Yes {
        return Ok(None);
    }
    ledger::add(db, &entry)?;
    Ok(Some(if next == Next::Dead { Status::Dead } else { Status::Failed }))
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

fn overdue(db: &Session<'_>, over: Option<Over>, limit: usize) -> Result<Vec<Lost>> {
    let Some(over) = over else { return Ok(Vec::new()) };
    let mut lost = db.all(EXPIRED, params![over.horizon.as_millis(), rows(limit)], read)?;
    if lost.len() < limit {
        let ahead = db.now().after(over.max_lease).as_millis();
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
