//! The queue in a SQLite file.
//!
//! Each family of verbs of [`Store`] has a file with its SQL on top and one function for each verb, which takes a `session`.
//! `writer` runs the verbs that write, many in one transaction; `readers` run the others; `watch` notices commits.

use std::path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::db_files::DbFiles;
use self::poll_timer::PollIntervals;
use self::prune::{CleanerState, Prune};
use self::readers::Readers;
use self::rescue::Expiry;
use self::session::Session;
use self::started::StartNotes;
use self::watch::ChangeWatcher;
use self::workers::Workers;
use self::writer::{BatchOrder, WriterThread};
use super::{
    AttemptFailure, AttemptRecord, AttemptWrite, BulkResult, Cancelled, ChangeCursor, Claim, Claims, Counts, Daemon,
    Deleted, Enqueued, Filter, Id, Job, JobRef, JobSummary, JobType, Lease, LogLine, NewJob, Overview, Page,
    ParkedClaim, Progress, Pruned, Receipt, Rescued, Resolved, Retention, Retried, RetryPolicies, Selected, Selection,
    StaleLease, Status, Store, StoreError, Timestamp, WorkerName,
};

mod attempts;
mod audit;
mod bulk_select;
mod cancel;
mod checkpoint;
mod claim;
mod counts;
mod daemons;
mod db_files;
mod delete;
mod end_attempt;
mod enqueue;
mod file_change;
mod file_events;
mod find;
mod foreign_keys;
mod heartbeat;
mod list;
mod lock_wait;
mod logs;
mod migrations;
mod open;
mod open_error;
mod options;
mod orphans;
mod pacer;
#[cfg(test)]
mod plans;
mod poll_timer;
mod prune;
mod readers;
mod rescue;
mod retry;
mod row;
mod session;
mod sqlite_error;
mod started;
mod table_name;
mod test_data;
mod vacuum;
mod wal;
mod watch;
mod worker_file;
mod workers;
mod writer;

pub use audit::Audit;
pub use open_error::OpenError;
pub use options::{Durability, OpenMode, QueueOptions};
/// The SQLite that [`enqueue_in`] works with.
pub use rusqlite;
pub use table_name::{TableName, TableNameError};
pub use test_data::{FillError, FillerRows, fill};

/// Adds jobs in a transaction of the application: they exist if and only if it commits.
///
/// The queue must exist in the same database ([`SqliteStore::open`]). A daemon notices the jobs within its `poll_interval`.
///
/// # Errors
/// When the table refuses a job or the database fails. The caller should then roll the transaction back.
pub fn enqueue_in(
    transaction: &rusqlite::Transaction<'_>,
    table: &TableName,
    jobs: &[NewJob],
) -> Result<Vec<Enqueued>, StoreError> {
    Ok(enqueue::enqueue(&Session::new(transaction, table), jobs)?)
}

/// The version of the bundled SQLite.
pub fn version() -> &'static str {
    rusqlite::version()
}

/// A queue in a SQLite file. Used inside a tokio runtime, from any number of tasks.
pub struct SqliteStore {
    writer: WriterThread,
    readers: Readers,
    watch: ChangeWatcher,
    files: Arc<DbFiles>,
    workers: Arc<Workers>,
    cleaner: CleanerState,
}

impl SqliteStore {
    /// Opens the queue and migrates its tables. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::NoDatabase`] and [`OpenError::NoTable`] only occur with [`OpenMode::Existing`].
    pub fn open(options: QueueOptions, mode: OpenMode) -> Result<Self, OpenError> {
        let options = QueueOptions { database: path::absolute(&options.database)?, ..options };
        let connection = open::writer(&options, mode)?;
        let files = Arc::new(DbFiles::of(&options.database)?);
        let workers = Arc::new(Workers::of(files.database(), &options.table)?);
        Ok(Self {
            writer: WriterThread::start(connection, options.table.clone(), options.busy_timeout, files.clone())?,
            readers: Readers::start(files.clone(), options.table)?,
            watch: ChangeWatcher::start(files.clone())?,
            files,
            workers,
            cleaner: CleanerState::default(),
        })
    }

    /// Transactions committed by this store since it was opened.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Compares the jobs of one type with their attempts. Reads all of them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn audit(&self, job_type: &JobType) -> Result<Audit, StoreError> {
        let job_type = job_type.clone();
        self.readers.read(move |db| audit::audit(db, &job_type)).await
    }

    /// Deletes attempts and log lines of jobs that are gone, one step at a time.
    async fn delete_orphans(&self) -> Result<(), StoreError> {
        let cursor = self.cleaner.orphans();
        let (orphans, cursor) = self.readers.read(move |db| orphans::find(db, cursor)).await?;
        if !orphans.is_empty() {
            self.writer.write(BatchOrder::First, orphans, |db, orphans| orphans::delete(db, orphans)).await?;
            self.cleaner.deleted();
        }
        self.cleaner.set_orphans(cursor);
        Ok(())
    }

    /// Returns a slice of free pages to the file system. Returns whether there are more.
    async fn return_free_pages(&self) -> Result<bool, StoreError> {
        let is_worth_it = self.readers.read(vacuum::is_worth_it).await?;
        if is_worth_it {
            self.writer.write(BatchOrder::Last, (), |db, ()| vacuum::vacuum(db)).await?;
        }
        Ok(is_worth_it)
    }

    /// Finishes pending calls, checkpoints and closes the file. Later calls fail.
    ///
    /// Waits for other processes' locks like any write.
    pub async fn close(&self) {
        self.retire_idle_workers().await;
        self.readers.close().await;
        self.watch.close().await;
        self.writer.close().await;
        self.workers.release_locks();
    }

    /// Removes the files of workers that were not retired and hold no job. The others will be found dead.
    async fn retire_idle_workers(&self) {
        for worker in self.workers.registered() {
            let holds_jobs = self
                .writer
                .look_then_write(
                    BatchOrder::Last,
                    worker.clone(),
                    |db, worker| rescue::holds_jobs(db, worker).map(Some),
                    |db, worker| rescue::holds_jobs(db, worker),
                )
                .await;
            if matches!(holds_jobs, Ok(false)) {
                self.workers.retire(&worker);
            }
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        self.writer.write(BatchOrder::Enqueue, jobs, |db, jobs| enqueue::enqueue(db, jobs)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claims, StoreError> {
        self.writer.look_then_write(BatchOrder::Last, claim, claim::look, claim::claim).await
    }

    fn park_claim(&self, claim: ParkedClaim) {
        self.writer.park_claim(claim);
    }

    async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Result<Vec<StaleLease>, StoreError> {
        self.writer
            .write(BatchOrder::First, (leases, lease), |db, (leases, hold)| heartbeat::renew(db, leases, *hold))
            .await
    }

    async fn stale(&self, leases: Vec<Lease>) -> Result<Vec<StaleLease>, StoreError> {
        self.readers.read(move |db| heartbeat::stale(db, &leases)).await
    }

    async fn save_progress(&self, progress: Vec<Progress>) -> Result<(), StoreError> {
        self.writer.write(BatchOrder::First, progress, |db, progress| heartbeat::save_progress(db, progress)).await
    }

    async fn complete(
        &self,
        receipt: Receipt,
        result: String,
        follow_ups: Vec<NewJob>,
    ) -> Result<AttemptWrite, StoreError> {
        let order = BatchOrder::Row(receipt.lease.job.seq());
        let request = (receipt, result, follow_ups);
        self.writer
            .write(order, request, |db, (receipt, result, jobs)| end_attempt::complete(db, receipt, result, jobs))
            .await
    }

    async fn fail(&self, receipt: Receipt, failure: AttemptFailure) -> Result<AttemptWrite, StoreError> {
        let order = BatchOrder::Row(receipt.lease.job.seq());
        self.writer
            .write(order, (receipt, failure), |db, (receipt, failure)| end_attempt::fail(db, receipt, failure))
            .await
    }

    async fn snooze(&self, receipt: Receipt, delay: Duration) -> Result<AttemptWrite, StoreError> {
        let order = BatchOrder::Row(receipt.lease.job.seq());
        self.writer
            .write(order, (receipt, delay), |db, (receipt, delay)| end_attempt::snooze(db, receipt, *delay))
            .await
    }

    async fn give_back(&self, receipt: Receipt) -> Result<AttemptWrite, StoreError> {
        self.writer.write(BatchOrder::Row(receipt.lease.job.seq()), receipt, end_attempt::give_back).await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        self.writer.write(BatchOrder::First, leases, |db, leases| end_attempt::release(db, leases)).await
    }

    async fn cancel(&self, id: &Id) -> Result<Cancelled, StoreError> {
        self.writer.write(BatchOrder::First, id.clone(), cancel::cancel).await
    }

    async fn retry(&self, id: &Id, policies: Arc<RetryPolicies>) -> Result<Retried, StoreError> {
        self.writer
            .write(BatchOrder::First, (id.clone(), policies), |db, (id, policies)| retry::retry(db, id, policies))
            .await
    }

    async fn select(&self, selection: Selection) -> Result<Selected, StoreError> {
        self.readers.read(move |db| bulk_select::select(db, &selection)).await
    }

    async fn cancel_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<BulkResult, StoreError> {
        self.writer.write(BatchOrder::First, (jobs, from), |db, (jobs, from)| cancel::cancel_many(db, jobs, from)).await
    }

    async fn delete_many(&self, jobs: Vec<JobRef>, from: Vec<Status>) -> Result<Deleted, StoreError> {
        let deleted = self
            .writer
            .write(BatchOrder::First, (jobs, from), |db, (jobs, from)| delete::delete_many(db, jobs, from))
            .await?;
        if deleted.deleted > 0 {
            self.writer.truncate_log().await;
        }
        Ok(deleted)
    }

    async fn retry_many(
        &self,
        jobs: Vec<JobRef>,
        from: Vec<Status>,
        policies: Arc<RetryPolicies>,
    ) -> Result<BulkResult, StoreError> {
        self.writer
            .write(BatchOrder::First, (jobs, from, policies), |db, (jobs, from, policies)| {
                retry::retry_many(db, jobs, from, policies)
            })
            .await
    }

    async fn register(&self, worker: &WorkerName) -> Result<(), StoreError> {
        let (workers, name) = (Arc::clone(&self.workers), worker.clone());
        if let Err(error) = self.readers.read(move |_| Ok(workers.register(name.as_str()))).await? {
            tracing::warn!(
                "cannot create the worker file of this daemon beside the database: if it is killed, its jobs wait for \
                 their leases to expire ({error})"
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
        // The time is taken before the wait for the lock: leases that expire during it belong to workers that wait for the same
        // lock to renew them.
        let expiry = max_lease.map(|max_lease| Expiry { horizon: Timestamp::now(), max_lease });
        let workers = Arc::clone(&self.workers);
        let found = self.readers.read(move |db| rescue::look(db, &workers, expiry, limit)).await?;
        let Some((evidence, stopped)) = found else { return Ok(Vec::new()) };
        let request = (policies, evidence, expiry, limit);
        let rescue = self
            .writer
            .write(BatchOrder::First, request, |db, (policies, evidence, expiry, limit)| {
                rescue::rescue(db, policies, evidence, *expiry, *limit)
            })
            .await?;
        self.readers.read(move |_| Ok(rescue.finish(stopped))).await
    }

    async fn prune(&self, retention: Retention, limit: usize) -> Result<Pruned, StoreError> {
        let request = Prune { retention, limit, from: self.cleaner.prune() };
        let (mut pruned, cursor) =
            self.writer.look_then_write(BatchOrder::First, request, prune::look, prune::prune).await?;
        self.cleaner.set_prune(cursor);
        if pruned.deleted > 0 {
            self.cleaner.deleted();
        }
        if !pruned.more {
            self.delete_orphans().await?;
            pruned.more = self.return_free_pages().await?;
        }
        if !pruned.more && self.cleaner.take_deleted() {
            self.writer.truncate_log().await;
        }
        Ok(pruned)
    }

    async fn prunable(&self, retention: Retention) -> Result<Selected, StoreError> {
        self.readers.read(move |db| prune::prunable(db, &retention)).await
    }

    async fn change(
        &self,
        since: ChangeCursor,
        poll: Duration,
        max_poll: Duration,
    ) -> Result<ChangeCursor, StoreError> {
        self.watch.change(since, PollIntervals { polled: poll, watched: max_poll }).await
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
        let (id, workers) = (id.clone(), Arc::clone(&self.workers));
        let show = move |job| StartNotes::of(&workers).show(job);
        self.readers.read(move |db| Ok(find::find(db, &id)?.map(show))).await
    }

    async fn list(&self, filter: Filter) -> Result<Page<Job>, StoreError> {
        let workers = Arc::clone(&self.workers);
        self.readers.read(move |db| list::jobs(db, &workers, &filter)).await
    }

    async fn summaries(&self, filter: Filter) -> Result<Page<JobSummary>, StoreError> {
        let workers = Arc::clone(&self.workers);
        self.readers.read(move |db| list::summaries(db, &workers, &filter)).await
    }

    async fn matching(&self, filter: Filter, most: usize) -> Result<usize, StoreError> {
        let workers = Arc::clone(&self.workers);
        self.readers.read(move |db| list::matching(db, &workers, &filter, most)).await
    }

    async fn attempts(&self, id: &Id) -> Result<Vec<AttemptRecord>, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| attempts::attempts(db, &id)).await
    }

    async fn history(&self, id: &Id) -> Result<Option<(Job, Vec<AttemptRecord>)>, StoreError> {
        let (id, workers) = (id.clone(), Arc::clone(&self.workers));
        let show = move |(job, attempts)| (StartNotes::of(&workers).show(job), attempts);
        self.readers.read(move |db| Ok(attempts::history(db, &id)?.map(show))).await
    }

    async fn logs(&self, id: &Id, skip: usize) -> Result<Vec<LogLine>, StoreError> {
        let id = id.clone();
        self.readers.read(move |db| logs::logs(db, &id, skip)).await
    }

    async fn has_running(&self) -> Result<bool, StoreError> {
        self.readers.read(counts::has_running).await
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        let workers = Arc::clone(&self.workers);
        self.readers.read(move |db| counts::overview(db, &workers)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.readers.read(counts::counts).await
    }

    async fn due_within(&self, within: Duration) -> Result<u64, StoreError> {
        self.readers.read(move |db| counts::due_within(db, within)).await
    }

    async fn health(&self) -> Result<Option<String>, StoreError> {
        self.files.check()?;
        Ok(self.files.warning())
    }

    async fn announce(&self, daemon: Daemon) -> Result<(), StoreError> {
        self.writer.write(BatchOrder::First, daemon, daemons::announce).await
    }

    async fn retire(&self, worker: &WorkerName) -> Result<(), StoreError> {
        let name = worker.clone();
        let retire = |db: &Session<'_>, worker: &WorkerName| {
            daemons::retire(db, worker.as_str())?;
            rescue::holds_jobs(db, worker.as_str())
        };
        let holds_jobs = self.writer.write(BatchOrder::First, worker.clone(), retire).await?;
        if holds_jobs {
            // The lock on its file is released when the process ends. The jobs are rescued then.
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
        let workers = Arc::clone(&self.workers);
        self.readers.read(move |db| daemons::daemons(db, &workers)).await
    }

    async fn close(&self) {
        SqliteStore::close(self).await;
    }
}
