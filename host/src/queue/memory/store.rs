//! The table with a lock and a clock, as a [`Store`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::daemons::Daemons;
use super::rescue::LostAttempts;
use super::table::Table;
use crate::queue::rows::Leased;
use crate::queue::{
    AttemptFailure, AttemptRecord, AttemptWrite, BulkResult, Cancelled, ChangeCursor, Claim, Claims, Counts, Daemon,
    Deleted, Enqueued, Filter, Id, Job, JobRef, JobSummary, Lease, LogLine, NewJob, Overview, Page, ParkedClaim,
    Progress, Pruned, Receipt, Rescued, Resolved, Retention, Retried, RetryPolicies, Selected, Selection, StaleLease,
    Status, Store, StoreError, Timestamp, WorkerName,
};

/// A queue in memory, for tests of applications and of the worker. It ends with the process.
///
/// ```
/// use jobq::queue::memory::MemoryStore;
/// use jobq::queue::{JobType, NewJob, Payload, Store};
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let store = MemoryStore::new();
/// let job = NewJob::new(JobType::parse("send_email")?, Payload::parse("{}".into(), 1000)?);
/// store.enqueue(vec![job]).await?;
/// assert_eq!(store.counts().await?.values().sum::<u64>(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore {
    state: Mutex<State>,
    changes: watch::Sender<ChangeCursor>,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

#[derive(Default)]
struct State {
    table: Table,
    daemons: Daemons,
    parked: Option<ParkedClaim>,
    is_closed: bool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty queue that uses the clock of this machine.
    pub fn new() -> Self {
        Self::with_clock(Timestamp::now)
    }

    /// An empty queue that uses another clock.
    pub fn with_clock(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let changes = watch::Sender::new(ChangeCursor::default().next());
        Self { state: Mutex::default(), changes, clock: Box::new(clock) }
    }

    /// Reads the queue.
    fn look<T>(&self, look: impl FnOnce(&mut State, Timestamp) -> T) -> Result<T, StoreError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        Ok(look(&mut state, (self.clock)()))
    }

    /// Changes the queue and notifies waiting calls.
    fn write<T>(&self, write: impl FnOnce(&mut State, Timestamp) -> T) -> Result<T, StoreError> {
        self.write_if(|_| true, write)
    }

    /// Changes the queue, and notifies waiting calls if the result says that something changed.
    fn write_if<T>(
        &self,
        changed: impl FnOnce(&T) -> bool,
        write: impl FnOnce(&mut State, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        let answer = self.look(write)?;
        if changed(&answer) {
            self.changes.send_modify(|newest| *newest = newest.next());
        }
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// The job as a reader sees it: pending, where it is leased and known not to have started.
    fn shown(&self, job: &Job) -> Job {
        let mut shown = job.clone();
        let worker = job.worker.as_deref().unwrap_or_default();
        let lease = Lease { job: job.reference, token: job.lease, worker: WorkerName::new(worker) };
        if job.status == Status::Running && !self.daemons.may_have_started(&lease) {
            shown.show_as_pending();
        }
        shown
    }

    fn enqueue(&mut self, jobs: Vec<NewJob>, now: Timestamp) -> Result<Vec<Enqueued>, StoreError> {
        let added = self.table.enqueue(jobs, now)?;
        if let Some((claim, answer)) = self.parked.take().and_then(|parked| parked.take()) {
            // Receiver dropped.
            _ = answer.send(Ok(self.table.claim(&claim, now)));
        }
        Ok(added)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        self.write(|state, now| state.enqueue(jobs, now))?
    }

    async fn claim(&self, claim: Claim) -> Result<Claims, StoreError> {
        self.write_if(|claims: &Claims| !claims.jobs.is_empty(), |state, now| state.table.claim(&claim, now))
    }

    fn park_claim(&self, claim: ParkedClaim) {
        self.lock().parked = Some(claim);
    }

    async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Result<Vec<StaleLease>, StoreError> {
        self.write(|state, now| state.table.renew(&leases, lease, now))
    }

    async fn stale(&self, leases: Vec<Lease>) -> Result<Vec<StaleLease>, StoreError> {
        self.look(|state, _| state.table.stale(&leases))
    }

    async fn save_progress(&self, progress: Vec<Progress>) -> Result<(), StoreError> {
        self.write(|state, _| state.table.save_progress(progress))
    }

    async fn complete(
        &self,
        receipt: Receipt,
        result: String,
        follow_ups: Vec<NewJob>,
    ) -> Result<AttemptWrite, StoreError> {
        self.write(|state, now| state.table.complete(receipt, result, follow_ups, now))?
    }

    async fn fail(&self, receipt: Receipt, failure: AttemptFailure) -> Result<AttemptWrite, StoreError> {
        self.write(|state, now| state.table.fail(receipt, failure, now))
    }

    async fn snooze(&self, receipt: Receipt, delay: Duration) -> Result<AttemptWrite, StoreError> {
        self.write(|state, now| state.table.snooze(receipt, delay, now))
    }

    async fn give_back(&self, receipt: Receipt) -> Result<AttemptWrite, StoreError> {
        self.write(|state, now| state.table.give_back(receipt, now))
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        self.write(|state, _| state.table.release(&leases))
    }

    async fn cancel(&self, id: &Id) -> Result<Cancelled, StoreError> {
        self.write(|state, now| state.table.cancel(id, now))
    }

    async fn retry(&self, id: &Id, policies: Arc<RetryPolicies>) -> Result<Retried, StoreError> {
        self.write(|state, now| state.table.retry(id, &policies, now))
    }

    async fn select(&self, selection: Selection) -> Result<Selected, StoreError> {
        self.look(|state, now| state.table.select(&selection, now))
    }

    async fn cancel_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<BulkResult, StoreError> {
        self.write(|state, now| state.table.cancel_many(&jobs, &from, now))
    }

    async fn delete_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<Deleted, StoreError> {
        self.write(|state, _| state.table.delete_many(&jobs, &from))
    }

    async fn retry_many(
        &self,
        jobs: Vec<JobRef>,
        from: Vec<Status>,
        policies: Arc<RetryPolicies>,
    ) -> Result<BulkResult, StoreError> {
        self.write(|state, now| state.table.retry_many(&jobs, &from, &policies, now))
    }

    async fn register(&self, worker: &WorkerName) -> Result<(), StoreError> {
        self.look(|state, _| state.daemons.register(worker))
    }

    fn started(&self, lease: &Lease) {
        self.lock().daemons.started(lease);
    }

    fn ended(&self, lease: &Lease) {
        self.lock().daemons.ended(lease);
    }

    /// No worker is ever proved dead here: the queue dies with the process.
    async fn rescue(
        &self,
        policies: Arc<RetryPolicies>,
        max_lease: Option<Duration>,
        limit: usize,
    ) -> Result<Vec<Rescued>, StoreError> {
        let lost = LostAttempts { dead: &[], max_lease, limit };
        let changed = |rescued: &Vec<Rescued>| !rescued.is_empty();
        self.write_if(changed, |State { table, daemons, .. }, now| {
            table.rescue(&policies, lost, |lease| daemons.may_have_started(lease), fastrand::f64, now)
        })
    }

    async fn prune(&self, retention: Retention, limit: usize) -> Result<Pruned, StoreError> {
        self.write_if(|pruned: &Pruned| pruned.deleted > 0, |state, now| state.table.prune(&retention, limit, now))
    }

    async fn prunable(&self, retention: Retention) -> Result<Selected, StoreError> {
        self.look(|state, now| state.table.prunable(&retention, now))
    }

    async fn change(&self, since: ChangeCursor, _: Duration, _: Duration) -> Result<ChangeCursor, StoreError> {
        let mut changes = self.changes.subscribe();
        let newest = changes.wait_for(|newest| *newest > since).await.map_err(|_| StoreError::Closed)?;
        let newest = *newest;
        self.look(|_, _| newest)
    }

    async fn holder(&self, key: &str, except: Option<Lease>) -> Result<Option<Id>, StoreError> {
        self.look(|state, _| state.table.holder(key, except.as_ref()).cloned())
    }

    async fn resolve(&self, id: &Id) -> Result<Resolved, StoreError> {
        self.look(|state, _| state.table.resolve(id))
    }

    async fn find(&self, id: &Id) -> Result<Option<Job>, StoreError> {
        self.look(|state, _| state.table.find(id).map(|job| state.shown(job)))
    }

    async fn list(&self, filter: Filter) -> Result<Page<Job>, StoreError> {
        self.look(|state, _| state.table.list(&filter, |job| state.shown(job)))
    }

    async fn summaries(&self, filter: Filter) -> Result<Page<JobSummary>, StoreError> {
        let Page { jobs, next } = self.list(filter).await?;
        Ok(Page { jobs: jobs.iter().map(JobSummary::from).collect(), next })
    }

    async fn matching(&self, filter: Filter, most: usize) -> Result<usize, StoreError> {
        self.look(|state, _| state.table.matching(&filter, |job| state.shown(job)).len().min(most))
    }

    async fn attempts(&self, id: &Id) -> Result<Vec<AttemptRecord>, StoreError> {
        self.look(|state, _| state.table.attempts(id).to_vec())
    }

    async fn history(&self, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>, StoreError> {
        self.look(|state, _| Some((state.shown(state.table.find(id)?), state.table.attempts(id).to_vec())))
    }

    async fn logs(&self, id: &Id, skip: usize) -> Result<Vec<LogLine>, StoreError> {
        self.look(|state, _| state.table.logs(id).get(skip..).unwrap_or_default().to_vec())
    }

    async fn has_running(&self) -> Result<bool, StoreError> {
        self.look(|state, _| state.table.has_running())
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        self.look(|state, now| state.table.overview(now, |job| state.shown(job)))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.look(|state, _| state.table.counts())
    }

    async fn due_within(&self, within: Duration) -> Result<u64, StoreError> {
        self.look(|state, now| state.table.due_within(within, now))
    }

    async fn health(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    async fn announce(&self, daemon: Daemon) -> Result<(), StoreError> {
        self.write(|state, now| state.daemons.announce(daemon, now))
    }

    async fn retire(&self, worker: &WorkerName) -> Result<(), StoreError> {
        self.write(|state, _| state.daemons.retire(worker))
    }

    async fn daemons(&self) -> Result<Vec<Daemon>, StoreError> {
        self.look(|state, _| state.daemons.announced())
    }

    async fn close(&self) {
        self.lock().is_closed = true;
        self.changes.send_modify(|newest| *newest = newest.next());
    }
}
