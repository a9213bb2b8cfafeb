//! The queue in a SQLite file.
//!
//! One file for each verb of [`Store`], with its SQL on top; each is a function of a `session` and its arguments.
//! `writer` runs those that write, many in one transaction; `readers` those that only look; `watch` tells that somebody wrote.

use std::path::{self, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::cleaning::Cleaning;
use self::db_files::FilePlace;
use self::poll_timer::Pace;
use self::prune::Prune;
use self::readers::Readers;
use self::rescue::Over;
use self::session::Session;
use self::watch::ChangeWatcher;
use self::workers::Workers;
use self::writer::{Place, Writer};
use super::{
    AttemptFailure, AttemptRecord, BulkResult, Cancelled, ChangeCursor, Claim, Claims, Counts, Daemon, Deleted, Enqueued,
    Filter, Id, Job, JobRef, JobType, Lease, LogLine, NewJob, ParkedClaim, Progress, Pruned, Receipt, Recorded,
    Rescued, Resolved, Retention, Retried, RetryPolicies, Selected, Selection, StaleLease, Status, Store, StoreError,
    Timestamp, WorkerName,
};

mod attempts;
mod audit;
mod bulk_select;
mod cancel;
mod checkpoint;
mod claim;
mod cleaning;
mod complete;
mod counts;
mod daemons;
mod delete;
mod db_files;
mod enqueue;
mod fail;
mod file_change;
mod file_events;
mod find;
mod foreign_keys;
mod give_back;
mod ledger;
mod list;
mod lock_wait;
mod logs;
mod migrations;
mod open;
mod orphans;
mod pacer;
#[cfg(test)]
mod plans;
mod poll_timer;
mod prune;
mod readers;
mod record;
mod release;
mod renew;
mod rescue;
mod retry;
mod row;
mod session;
mod snooze;
mod sqlite_error;
mod table_name;
mod test_data;
mod watch;
mod worker_file;
mod workers;
mod writer;

pub use audit::Audit;
pub use open::{OpenError, OpenMode};
/// The SQLite that [`enqueue_in`] works with.
pub use rusqlite;
pub use table_name::{TableName, TableNameError};
pub use test_data::{FillError, FillerRows, fill};

/// Where the queue is and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// The file.
    pub database: PathBuf,
    /// The table in it. Default: `jobs`.
    pub table: TableName,
    /// What an acknowledged write survives. Default: [`Durability::Full`].
    pub durability: Durability,
    /// How long a write waits for another process that holds the database, before it fails with [`StoreError::Busy`].
    /// Default: `None`, as long as it takes, with a warning every 5 s.
    pub patience: Option<Duration>,
}

impl QueueOptions {
    /// The queue `jobs` in this file, with everything else at its default.
    pub fn new(database: impl Into<PathBuf>) -> Self {
        Self { database: database.into(), table: TableName::default(), durability: Durability::Full, patience: None }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut.
    Full,
    /// A crash of the process.
    Normal,
}

/// Adds jobs within a transaction of the application's own: they exist when it commits, or not at all.
///
/// The queue must exist ([`SqliteStore::open`]) in the same database. A daemon notices the jobs within its `poll_interval`.
///
/// # Errors
/// When the table refuses a job or the database fails; the transaction is then the caller's to roll back.
pub fn enqueue_in(
    transaction: &rusqlite::Transaction<'_>,
    table: &TableName,
    jobs: &[NewJob],
) -> Result<Vec<Enqueued>, StoreError> {
    Ok(enqueue::enqueue(&Session::new(transaction, table), jobs)?)
}

/// The version of SQLite that is built in.
pub fn version() -> &'static str {
    rusqlite::version()
}

/// A queue in a SQLite file. Used inside a tokio runtime, from any number of tasks.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    watch: ChangeWatcher,
    place: Arc<FilePlace>,
    workers: Arc<Workers>,
    cleaning: Cleaning,
}

impl SqliteStore {
    /// Opens the queue and brings its tables to the newest version. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::NoDatabase`] and [`OpenError::NoTable`] come only with [`OpenMode::Existing`].
    pub fn open(options: QueueOptions, mode: OpenMode) -> Result<Self, OpenError> {
        let options = QueueOptions { database: path::absolute(&options.database)?, ..options };
        let connection = open::writer(&options, mode)?;
        let place = Arc::new(FilePlace::of(&options.database)?);
        let workers = Arc::new(Workers::of(place.database(), &options.table)?);
        Ok(Self {
            writer: Writer::start(connection, options.table.clone(), options.patience, place.clone())?,
            readers: Readers::start(place.clone(), options.table)?,
            watch: ChangeWatcher::start(place.clone())?,
            place,
            workers,
            cleaning: Cleaning::default(),
        })
    }

    /// Transactions that this store has committed since it was opened: what a durable queue pays the disk for.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Compares the jobs of one type with the ledger of their attempts. Reads every one of them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn audit(&self, job_type: &JobType) -> Result<Audit, StoreError> {
        let job_type = job_type.clone();
        self.readers.read(move |db| audit::audit(db, &job_type)).await
    }

    /// Looks a little further for what jobs have left that are gone.
    async fn forget_orphans(&self) -> Result<(), StoreError> {
        let walked = self.cleaning.walked();
        let (orphans, walked) = self.readers.read(move |db| orphans::look(db, walked)).await?;
        if !orphans.is_empty() {
            self.writer.write(Place::First, orphans, |db, orphans| orphans::delete(db, orphans)).await?;
        }
        self.cleaning.walk_from(walked);
        Ok(())
    }

    /// Finishes what was asked for, writes the log back into the file and closes it. Every later call is refused.
    ///
    /// Waits for a foreign lock as every write does.
    pub async fn close(&self) {
        self.leave().await;
        self.readers.close().await;
        self.watch.close().await;
        self.writer.close().await;
        self.workers.leave();
    }

    /// Removes the files of workers that were not retired and hold no job; the others will be found dead.
    async fn leave(&self) {
        for worker in self.workers.registered() {
            let looked = self
                .writer
                .look_then_write(
                    Place::Last,
                    worker.clone(),
                    |db, worker| rescue::holds_jobs(db, worker).map(Some),
                    |db, worker| rescue::holds_jobs(db, worker),
                )
                .await;
            if matches!(looked, Ok(false)) {
                self.workers.retire(&worker);
            }
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        self.writer.write(Place::Added, jobs, |db, jobs| enqueue::enqueue(db, jobs)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claims, StoreError> {
        self.writer.look_then_write(Place::Last, claim, claim::look, claim::claim).await
    }

    fn park_claim(&self, claim: ParkedClaim) {
        self.writer.park_claim(claim);
    }

    async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Result<Vec<StaleLease>, StoreError> {
        self.writer.write(Place::First, (leases, lease), |db, (leases, hold)| renew::renew(db, leases, *hold)).await
    }

    async fn stale(&self, leases: Vec<Lease>) -> Result<Vec<StaleLease>, StoreError> {
        self.readers.read(move |db| renew::stale(db, &leases)).await
    }

    async fn record(&self, progress: Vec<Progress>) -> Result<(), StoreError> {
        self.writer.write(Place::First, progress, |db, progress| record::record(db, progress)).await
    }

    async fn complete(
        &self,
        receipt: Receipt,
        result: String,
        follow_ups: Vec<NewJob>,
    ) -> Result<Recorded, StoreError> {
        let place = Place::Row(receipt.lease.job.seq());
        let request = (receipt, result, follow_ups);
        self.writer
            .write(place, request, |db, (receipt, result, jobs)| complete::complete(db, receipt, result, jobs))
            .await
    }

    async fn fail(&self, receipt: Receipt, failure: AttemptFailure) -> Result<Recorded, StoreError> {
        let place = Place::Row(receipt.lease.job.seq());
        self.writer.write(place, (receipt, failure), |db, (receipt, failure)| fail::fail(db, receipt, failure)).await
    }

    async fn snooze(&self, receipt: Receipt, delay: Duration) -> Result<Recorded, StoreError> {
        let place = Place::Row(receipt.lease.job.seq());
        self.writer.write(place, (receipt, delay), |db, (receipt, delay)| snooze::snooze(db, receipt, *delay)).await
    }

    async fn give_back(&self, receipt: Receipt) -> Result<Recorded, StoreError> {
        self.writer.write(Place::Row(receipt.lease.job.seq()), receipt, give_back::give_back).await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        self.writer.write(Place::First, leases, |db, leases| release::release(db, leases)).await
    }

    async fn cancel(&self, id: &Id) -> Result<Cancelled, StoreError> {
        self.writer.write(Place::First, id.clone(), cancel::cancel).await
    }

    async fn retry(&self, id: &Id, policies: Arc<RetryPolicies>) -> Result<Retried, StoreError> {
        self.writer
            .write(Place::First, (id.clone(), policies), |db, (id, policies)| retry::retry(db, id, policies))
            .await
    }

    async fn select(&self, selection: Selection) -> Result<Selected, StoreError> {
        self.readers.read(move |db| bulk_select::select(db, &selection)).await
    }

    async fn cancel_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<BulkResult, StoreError> {
        self.writer.write(Place::First, (jobs, from), |db, (jobs, from)| cancel::cancel_many(db, jobs, from)).await
    }

    async fn delete_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<Deleted, StoreError> {
        self.writer.write(Place::First, (jobs, from), |db, (jobs, from)| delete::delete_many(db, jobs, from)).await
    }

    async fn retry_many(
        &self,
        jobs: Vec<JobRef>,
        from: Vec<Status>,
        policies: Arc<RetryPolicies>,
    ) -> Result<BulkResult, StoreError> {
        self.writer
            .write(Place::First, (jobs, from, policies), |db, (jobs, from, policies)| {
                retry::retry_many(db, jobs, from, policies)
            })
            .await
    }

    async fn register(&self, worker: &WorkerName) -> Result<(), StoreError> {
        let (workers, name) = (Arc::clone(&self.workers), worker.clone());
        if let Err(error) = self.readers.read(move |_| Ok(workers.register(name.as_str()))).await? {
            tracing::warn!(
                "cannot make a file for this daemon beside the database: if it is killed, its jobs wait for their leases \
                 to expire ({error})"
            );
        }
        Ok(())
    }

    fn started(&self, lease: &Lease) {
        self.workers.started(lease.worker.as_str(), (lease.job.seq(), lease.token));
    }

    fn ended(&self, lease: &Lease) {
        self.workers.ended(lease.worker.as_str(), (lease.job.seq(), lease.token));
    }

    async fn rescue(
        &self,
        policies: Arc<RetryPolicies>,
        max_lease: Option<Duration>,
        limit: usize,
    ) -> Result<Vec<Rescued>, StoreError> {
        // What expires while this waits for a foreign lock has a worker that waits for the same lock to renew.
        let over = max_lease.map(|max_lease| Over { horizon: Timestamp::now(), max_lease });
        let workers = Arc::clone(&self.workers);
        let found = self.readers.read(move |db| rescue::look(db, &workers, over, limit)).await?;
        let Some((findings, stopped)) = found else { return Ok(Vec::new()) };
        let request = (policies, findings, over, limit);
        let rescue = self
            .writer
            .write(Place::First, request, |db, (policies, findings, over, limit)| {
                rescue::rescue(db, policies, findings, *over, *limit)
            })
            .await?;
        self.readers.read(move |_| Ok(rescue.conclude(stopped))).await
    }

    async fn prune(&self, retention: Retention, limit: usize) -> Result<Pruned, StoreError> {
        let request = Prune { retention, limit, from: self.cleaning.pruned_to() };
        let (pruned, to) = self.writer.look_then_write(Place::First, request, prune::look, prune::prune).await?;
        self.cleaning.prune_from(to);
        if !pruned.more {
            self.forget_orphans().await?;
        }
        Ok(pruned)
    }

    async fn prunable(&self, retention: Retention) -> Result<Selected, StoreError> {
        self.readers.read(move |db| prune::prunable(db, &retention)).await
    }

    async fn change(&self, since: ChangeCursor, pace: Duration, net: Duration) -> Result<ChangeCursor, StoreError> {
        self.watch.change(since, Pace { poll: pace, net }).await
    }

    async fn holder(&self, key: &str, except: Option<Lease>) -> Result<Option<Id>, StoreError> {
        let key = key.to_owned();
        self.readers.read(move |db| find::holder(db, &key, except)).await
    }

    async fn resolve(&self, id: &Id) -> Result<Resolved, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| find::resolve(db, &id)).await
    }

    async fn find(&self, id: &Id) -> Result<Option<Job>, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| find::find(db, &id)).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Job>, StoreError> {
        self.readers.read(move |db| list::list(db, &filter)).await
    }

    async fn attempts(&self, id: &Id) -> Result<Vec<AttemptRecord>, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| attempts::attempts(db, &id)).await
    }

    async fn history(&self, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| attempts::history(db, &id)).await
    }

    async fn logs(&self, id: &Id, skip: usize) -> Result<Vec<LogLine>, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| logs::logs(db, &id, skip)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.readers.read(counts::counts).await
    }

    async fn due_within(&self, within: Duration) -> Result<u64, StoreError> {
        self.readers.read(move |db| counts::due_within(db, within)).await
    }

    async fn health(&self) -> Result<Option<String>, StoreError> {
        self.place.check()?;
        Ok(self.place.remark())
    }

    async fn announce(&self, daemon: Daemon) -> Result<(), StoreError> {
        self.writer.write(Place::First, daemon, daemons::announce).await
    }

    async fn retire(&self, worker: &WorkerName) -> Result<(), StoreError> {
        let name = worker.clone();
        let retire = |db: &Session<'_>, worker: &WorkerName| {
            daemons::retire(db, worker.as_str())?;
            rescue::holds_jobs(db, worker.as_str())
        };
        let holds_jobs = self.writer.write(Place::First, worker.clone(), retire).await?;
        if holds_jobs {
            // They are taken back as soon as the process has ended, which the lock on the file will show.
            return Ok(());
        }
        let workers = Arc::clone(&self.workers);
        let remove = move |_: &Session<'_>| {
            workers.retire(name.as_str());
            Ok(())
        };
        self.readers.read(remove).await
    }

    async fn daemons(&self) -> Result<Vec<Daemon>, StoreError> {
        self.readers.read(daemons::daemons).await
    }

    async fn close(&self) {
        SqliteStore::close(self).await;
    }
}
