//! Attempts that nobody will end any more: running → failed, or dead; → pending, where the guest is proved not to have started.
//!
//! [`look`] finds out whether there are any and asks the files of the workers, without the database's lock; [`rescue`] writes.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{Result, Row, params};

use super::fail::{self, Settled};
use super::ledger::{self, Entry};
use super::session::Session;
use super::worker_file::Notes;
use super::workers::{StoppedWorker, Workers};
use super::{daemons, release, row};
use crate::queue::{Id, JobRef, Lease, Next, Outcome, Policies, Recorded, Rescued, Status, Timestamp, WorkerName};

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
    /// Workers that have stopped and left something. Nobody else judges them while this exists.
    stopped: Vec<StoppedWorker>,
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
    /// Removes the files of workers that have left nothing any more.
    pub(super) fn forget(&self, rescue: Rescue) -> Vec<Rescued> {
        let settled = |worker: &&StoppedWorker| rescue.settled.contains(worker.name());
        self.stopped.iter().filter(settled).for_each(StoppedWorker::forget);
        rescue.rescued
    }

    fn is_dead(&self, worker: &str) -> bool {
        self.stopped.iter().any(|stopped| stopped.is_dead && stopped.name() == worker)
    }
}

/// What there may be to rescue; `None` where nothing is.
pub(super) fn look(db: &Session<'_>, workers: &Workers, over: Over, limit: usize) -> Result<Option<Findings>> {
    let mut findings = Findings::default();
    for worker in workers.stopped() {
        match left_by(db, &worker)? {
            Left::Nothing => worker.forget(),
            Left::Unknown => {}
            Left::Report | Left::Jobs => findings.stopped.push(worker),
        }
    }
    let over = lost(db, over, limit)?;
    let dead = findings.stopped.iter().filter(|worker| worker.is_dead).map(StoppedWorker::name);
    for worker in over.iter().filter_map(|lost| lost.worker.as_deref()).chain(dead) {
        if !findings.notes.contains_key(worker)
            && let Some(notes) = workers.notes_of(worker)
        {
            findings.notes.insert(worker.to_owned(), notes);
        }
    }
    Ok((!over.is_empty() || !findings.stopped.is_empty()).then_some(findings))
}

/// Ends at most `limit` attempts: those whose lease is over, then those of dead workers, the oldest leases first.
pub(super) fn rescue(
    db: &Session<'_>,
    policies: &Policies,
    findings: &Findings,
    over: Over,
    limit: usize,
) -> Result<Rescue> {
    let mut rescue = Rescue { rescued: Vec::new(), settled: BTreeSet::new() };
    for lost in lost(db, over, limit)? {
        rescue.rescued.extend(end(db, policies, findings, lost)?);
    }
    for worker in &findings.stopped {
        if worker.is_dead {
            for lost in of_worker(db, worker.name(), limit.saturating_sub(rescue.rescued.len()))? {
                rescue.rescued.extend(end(db, policies, findings, lost)?);
            }
        }
        if matches!(left_by(db, worker)?, Left::Nothing | Left::Report) {
            daemons::retire(db, worker.name())?;
            rescue.settled.insert(worker.name().to_owned());
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

fn left_by(db: &Session<'_>, worker: &StoppedWorker) -> Result<Left> {
    let holds_jobs = holds_jobs(db, worker.name())?;
    let silent_for = daemons::seen_at(db, worker.name())?.map(|seen_at| db.now().since(seen_at));
    let may_live = !worker.is_dead && (holds_jobs || silent_for.is_some_and(|silent_for| silent_for < SILENCE));
    Ok(match silent_for {
        _ if may_live => Left::Unknown,
        _ if holds_jobs => Left::Jobs,
        Some(_) => Left::Report,
        None => Left::Nothing,
    })
}

/// Ends one attempt: lost, or as if it had never been where its guest is proved not to have started.
fn end(db: &Session<'_>, policies: &Policies, findings: &Findings, lost: Lost) -> Result<Option<Rescued>> {
    let worker = lost.worker.as_deref().unwrap_or_default();
    let is_started = findings.notes.get(worker).is_none_or(|notes| notes.has((lost.job.seq(), lost.token)));
    let status = if is_started {
        fail(db, policies, &lost, findings.is_dead(worker))?
    } else {
        let lease = Lease { job: lost.job, token: lost.token, worker: WorkerName::new(worker) };
        release::release(db, &[lease])?;
        Some(Status::Pending)
    };
    Ok(status.map(|status| Rescued { id: lost.id, job_type: lost.job_type, worker: lost.worker, status }))
}

fn fail(db: &Session<'_>, policies: &Policies, lost: &Lost, is_dead: bool) -> Result<Option<Status>> {
    let error = match &lost.worker {
        Some(worker) if is_dead => format!("lost: worker `{worker}` died"),
        Some(worker) => format!("lost: worker `{worker}` stopped renewing its lease"),
        None => "lost: its worker stopped renewing the lease".to_owned(),
    };
    let started_at = lost.started_at.unwrap_or(db.now());
    let mut entry = Entry::without_receipt(lost.job, lost.token, lost.attempts, Outcome::Lost, started_at, db.now());
    entry.error = Some(&error);
    let policy = policies.of(&lost.job_type);
    let next = policy.after_failure(Outcome::Lost, entry.attempt, lost.max_attempts, None, fastrand::f64());
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

fn lost(db: &Session<'_>, over: Over, limit: usize) -> Result<Vec<Lost>> {
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
