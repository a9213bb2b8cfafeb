//! The writer thread: runs all waiting commands in one transaction and replies after the commit (group commit).
//!
//! There is one write connection, because SQLite allows one writer anyway and its lock is unfair. Commands share a commit,
//! because a durable commit costs as much as a hundred of them. Nothing is delayed to fill a batch: the next batch gathers
//! while one commits.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::checkpoint::{CheckpointTask, Checkpointer};
use super::db_files::DbFiles;
use super::file_change::{FileChange, FileChangeDetector};
use super::lock_wait::{LockWait, LockWaitError};
use super::pacer::Pacer;
use super::session::Session;
use super::table_name::TableName;
use super::wal::{CHECKPOINT, CheckpointAdvice, MEASURE, WalSize};
use super::{claim, sqlite_error};
use crate::queue::{Claim, Claims, ParkedClaim, StoreError};

/// The most commands in one transaction.
const MAX_BATCH: usize = 1024;

/// More replies than this are sent from the runtime: waking a task from another thread costs several times as much.
const MAX_DIRECT_REPLIES: usize = 4;

/// Changes whenever another connection commits.
const DATA_VERSION: &str = "PRAGMA data_version";

/// The log grows by a few megabytes at most in this time.
const MEASURE_INTERVAL: Duration = Duration::from_millis(10);

/// The order of the commands in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BatchOrder {
    /// Adds jobs. A parked claim runs in the same transaction.
    Enqueue,
    /// Before the commands about one job.
    First,
    /// By the row of the job, so that neighbouring pages are written together.
    Row(i64),
    /// After everything that may add to the result.
    Last,
}

/// A verb that runs in a transaction.
type Write<R, T> = fn(&Session<'_>, &R) -> Result<T>;

/// Returns the result of a verb if it has nothing to write, `None` otherwise.
type Look<R, T> = fn(&Session<'_>, &R) -> Result<Option<T>>;

/// The handle to the thread.
pub(super) struct WriterThread {
    inbox: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
    checkpointer: Arc<Checkpointer>,
}

/// What the handle and the thread share.
#[derive(Default)]
struct Shared {
    /// The runtime of the first command.
    runtime: OnceLock<Handle>,
    commits: AtomicU64,
    parked: Mutex<Option<ParkedClaim>>,
}

impl Shared {
    fn parked(&self) -> MutexGuard<'_, Option<ParkedClaim>> {
        self.parked.lock()
    }
}

enum Message {
    Do(Box<dyn Step>),
    Close,
}

impl WriterThread {
    pub(super) fn start(
        connection: Connection,
        table: TableName,
        busy_timeout: Option<Duration>,
        files: Arc<DbFiles>,
    ) -> io::Result<Self> {
        let (inbox, inbox_end) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let of_thread = shared.clone();
        let checkpointer = Arc::new(Checkpointer::start(files.clone())?);
        let checkpoints = checkpointer.clone();
        let run = move || {
            WriterLoop::new(&connection, &table, inbox_end, busy_timeout, of_thread, &files, &checkpoints).run();
            checkpoints.close();
            close(connection, &files);
        };
        let thread = thread::Builder::new().name("jobq-writer".to_owned()).spawn(run)?;
        Ok(Self { inbox, thread: Mutex::new(Some(thread)), shared, checkpointer })
    }

    /// Transactions committed since the start. Read-only ones don't count.
    pub(super) fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Empties the write-ahead log, so that deleted text is gone from it.
    pub(super) async fn truncate_log(&self) {
        self.checkpointer.truncate().await;
    }

    /// Runs `claim` in the next transaction that adds jobs.
    pub(super) fn park_claim(&self, claim: ParkedClaim) {
        *self.shared.parked() = Some(claim);
    }

    /// Runs `write` in the next transaction.
    ///
    /// It may run twice: a batch in which a command fails is rolled back and repeated, with a savepoint for each command.
    pub(super) async fn write<R, T>(&self, order: BatchOrder, request: R, write: Write<R, T>) -> Result<T, StoreError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.send(order, request, None, write).await
    }

    /// Runs `write` in the next transaction, unless nothing else is to be written and `look` returns the result.
    pub(super) async fn look_then_write<R, T>(
        &self,
        order: BatchOrder,
        request: R,
        look: Look<R, T>,
        write: Write<R, T>,
    ) -> Result<T, StoreError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.send(order, request, Some(look), write).await
    }

    async fn send<R, T>(
        &self,
        order: BatchOrder,
        request: R,
        look: Option<Look<R, T>>,
        write: Write<R, T>,
    ) -> Result<T, StoreError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.shared.runtime.get_or_init(Handle::current);
        let (reply, received) = oneshot::channel();
        let command = Command { order, request, look, write, result: None, reply };
        self.inbox.send(Message::Do(Box::new(command))).map_err(|_| StoreError::Closed)?;
        received.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Runs the commands that wait, checkpoints and ends the thread.
    pub(super) async fn close(&self) {
        // Fails if the thread has already ended.
        let _ = self.inbox.send(Message::Close);
        let thread = self.thread.lock().take();
        let Some(thread) = thread else { return };
        if !matches!(tokio::task::spawn_blocking(|| thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the writer thread panicked");
        }
    }
}

/// A verb with its arguments.
struct Command<R, T> {
    order: BatchOrder,
    request: R,
    look: Option<Look<R, T>>,
    write: Write<R, T>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// A command, with its types erased.
trait Step: Send {
    fn order(&self) -> BatchOrder;
    /// Whether the receiver was dropped.
    fn is_abandoned(&self) -> bool;
    fn can_look(&self) -> bool;
    /// Returns whether no write is needed.
    fn look(&mut self, session: &Session<'_>) -> bool;
    fn write(&mut self, session: &Session<'_>) -> Result<()>;
    /// Makes the error the result.
    fn refuse(&mut self, error: rusqlite::Error);
    fn reply(self: Box<Self>, committed: &Result<(), StoreError>);
}

impl<R: Send, T: Send> Step for Command<R, T> {
    fn order(&self) -> BatchOrder {
        self.order
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn can_look(&self) -> bool {
        self.look.is_some()
    }

    fn look(&mut self, session: &Session<'_>) -> bool {
        self.result = self.look.and_then(|look| look(session, &self.request).transpose());
        self.result.is_some()
    }

    fn write(&mut self, session: &Session<'_>) -> Result<()> {
        self.result = Some(Ok((self.write)(session, &self.request)?));
        Ok(())
    }

    fn refuse(&mut self, error: rusqlite::Error) {
        self.result = Some(Err(error));
    }

    fn reply(self: Box<Self>, committed: &Result<(), StoreError>) {
        let reply = match (committed, self.result) {
            (Err(error), _) => Err(error.clone()),
            (Ok(()), Some(result)) => result.map_err(StoreError::from),
            (Ok(()), None) => Err(StoreError::Closed),
        };
        // Receiver dropped.
        let _ = self.reply.send(reply);
    }
}

type Batch = Vec<Box<dyn Step>>;

/// The replies of a finished batch. Dropping it sends them.
struct Replies {
    batch: Batch,
    committed: Result<(), StoreError>,
}

impl Replies {
    /// Sends many replies from the runtime, few from this thread.
    fn send(self, runtime: Option<&Handle>) {
        if let Some(runtime) = runtime.filter(|_| self.batch.len() > MAX_DIRECT_REPLIES) {
            runtime.spawn(async move { drop(self) });
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.batch.drain(..).for_each(|step| step.reply(&self.committed));
    }
}

/// The thread's side.
struct WriterLoop<'c> {
    session: Session<'c>,
    inbox: Receiver<Message>,
    lock_wait: LockWait,
    shared: Arc<Shared>,
    files: &'c DbFiles,
    checkpointer: &'c Checkpointer,
    pacer: RefCell<Pacer>,
    file_changes: RefCell<FileChangeDetector>,
    others_committed: Cell<bool>,
    /// The last value of `PRAGMA data_version`.
    data_version: Cell<Option<i64>>,
    /// When the log was last measured.
    measured: Cell<Option<Instant>>,
}

impl<'c> WriterLoop<'c> {
    fn new(
        connection: &'c Connection,
        table: &'c TableName,
        inbox: Receiver<Message>,
        busy_timeout: Option<Duration>,
        shared: Arc<Shared>,
        files: &'c DbFiles,
        checkpointer: &'c Checkpointer,
    ) -> Self {
        Self {
            session: Session::new(connection, table),
            inbox,
            lock_wait: LockWait::to_write(busy_timeout),
            shared,
            files,
            checkpointer,
            pacer: RefCell::default(),
            file_changes: RefCell::default(),
            others_committed: Cell::new(false),
            data_version: Cell::new(None),
            measured: Cell::new(None),
        }
    }

    fn run(&self) {
        while let Ok(message) = self.inbox.recv() {
            let (batch, mut closing) = self.gather(Batch::new(), Some(message));
            let mut batch = self.look(batch);
            if !batch.is_empty() {
                if !closing {
                    (batch, closing) = self.yield_to_other_writers(batch);
                }
                self.write(batch);
                self.maintain_log();
            }
            if closing {
                return;
            }
        }
    }

    /// Checkpoints if it is time to. Runs after the replies were sent.
    fn maintain_log(&self) {
        let now = Instant::now();
        if self.measured.get().is_some_and(|measured| now - measured < MEASURE_INTERVAL) {
            return;
        }
        self.measured.set(Some(now));
        if self.files.check().is_err() {
            return;
        }
        let done = self.session.first(MEASURE, [], WalSize::read).and_then(|log| self.checkpoint_or_delegate(log));
        if let Err(error) = done {
            tracing::warn!("cannot checkpoint the write-ahead log: {}", self.failed(error));
        }
    }

    fn checkpoint_or_delegate(&self, log: Option<WalSize>) -> Result<()> {
        let Some(log) = log else { return Ok(()) };
        self.check_file(log);
        match log.advice() {
            CheckpointAdvice::Wait => {}
            CheckpointAdvice::Delegate => self.checkpointer.submit(CheckpointTask::Checkpoint),
            CheckpointAdvice::Checkpoint => {
                self.session.first(CHECKPOINT, [], WalSize::read)?;
                self.session.first(MEASURE, [], WalSize::read)?.into_iter().for_each(|log| self.check_file(log));
            }
        }
        Ok(())
    }

    /// Detects changes of the database file that SQLite did not make.
    fn check_file(&self, log: WalSize) {
        let mut detector = self.file_changes.borrow_mut();
        detector.committed(log, self.others_committed.take() || self.checkpointer.has_truncated());
        let change = self.files.stamp().map(|stamp| detector.look(Instant::now(), stamp));
        if let Some(FileChange::Unexplained { resized }) = change {
            self.checkpointer.submit(CheckpointTask::Examine { resized });
        }
    }

    /// Leaves the lock free for as long as the pacer says, and adds the commands that arrive meanwhile to the batch.
    fn yield_to_other_writers(&self, batch: Batch) -> (Batch, bool) {
        match self.pacer.borrow().pause(Instant::now()) {
            Some(pause) => thread::sleep(pause),
            None => return (batch, false),
        }
        self.gather(batch, self.inbox.try_recv().ok())
    }

    /// Adds the commands that wait, in the order to run them. Returns whether to stop after this batch.
    fn gather(&self, mut batch: Batch, mut next: Option<Message>) -> (Batch, bool) {
        while let Some(Message::Do(step)) = next {
            if !step.is_abandoned() {
                batch.push(step);
            }
            if batch.len() >= MAX_BATCH {
                next = None;
                break;
            }
            next = self.inbox.try_recv().ok();
        }
        if batch.iter().any(|step| step.order() == BatchOrder::Enqueue) {
            batch.extend(self.parked_claim());
        }
        batch.sort_by_key(|step| step.order());
        (batch, matches!(next, Some(Message::Close)))
    }

    /// The parked claim, as a command.
    fn parked_claim(&self) -> Option<Box<dyn Step>> {
        let (request, reply) = self.shared.parked().take()?.take()?;
        let write: Write<Claim, Claims> = claim::claim;
        Some(Box::new(Command { order: BatchOrder::Last, request, look: None, write, result: None, reply }))
    }

    /// If every command can be read-only: replies to those that have nothing to write, and returns the rest.
    fn look(&self, batch: Batch) -> Batch {
        if batch.is_empty() || !batch.iter().all(|step| step.can_look()) {
            return batch;
        }
        let begun =
            self.files.check().and_then(|()| self.session.execute("BEGIN", []).map_err(|error| self.failed(error)));
        if let Err(error) = begun {
            Replies { batch, committed: Err(error) }.send(self.shared.runtime.get());
            return Batch::new();
        }
        self.session.tick();
        let mut rest = Batch::new();
        for mut step in batch {
            if step.look(&self.session) {
                step.reply(&Ok(()));
            } else {
                rest.push(step);
            }
        }
        self.roll_back();
        rest
    }

    fn write(&self, mut batch: Batch) {
        let committed = self.transact(&mut batch, all_or_none).or_else(|error| match error {
            BatchError::Rows => self.transact(&mut batch, each_on_a_savepoint),
            error => Err(error),
        });
        let committed = committed.map_err(|error| self.files.record_fatal(error.into_store_error()));
        Replies { batch, committed }.send(self.shared.runtime.get());
    }

    fn transact(&self, batch: &mut Batch, run: fn(&Session<'_>, &mut Batch) -> Result<()>) -> Result<(), BatchError> {
        self.begin()?;
        let begun = Instant::now();
        let done = self.run_and_commit(batch, run);
        if done.is_err() {
            self.roll_back();
        }
        let now = Instant::now();
        self.pacer.borrow_mut().released(now, now - begun);
        done
    }

    /// Runs the batch and commits it. A commit to files that have been replaced counts as failed.
    fn run_and_commit(
        &self,
        batch: &mut Batch,
        run: fn(&Session<'_>, &mut Batch) -> Result<()>,
    ) -> Result<(), BatchError> {
        self.files.check()?;
        self.note_foreign_commits()?;
        run(&self.session, batch)?;
        self.session.execute("COMMIT", [])?;
        self.files.check()?;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn note_foreign_commits(&self) -> Result<()> {
        let version = self.session.first(DATA_VERSION, [], |row| row.get(0))?;
        let seen = self.data_version.replace(version);
        if seen.is_some() && seen != version {
            self.others_committed.set(true);
            self.pacer.borrow_mut().foreign_commit(Instant::now());
        }
        Ok(())
    }

    /// Takes the write lock; waits for other processes up to `busy_timeout`.
    fn begin(&self) -> Result<(), BatchError> {
        self.files.check()?;
        self.lock_wait.retry(|| self.session.execute("BEGIN IMMEDIATE", [])).map_err(|error| match error {
            LockWaitError::Busy => BatchError::Database(StoreError::Busy),
            LockWaitError::Sqlite(error) => BatchError::from(error),
        })?;
        self.session.tick();
        Ok(())
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        self.files.record_fatal(error.into())
    }

    /// Rolls back, unless SQLite has already done so.
    fn roll_back(&self) {
        if self.session.connection().is_autocommit() {
            return;
        }
        if let Err(error) = self.session.execute("ROLLBACK", []) {
            tracing::error!(%error, "cannot roll back the transaction");
        }
    }
}

/// Why a batch was not committed.
enum BatchError {
    /// The table refused the rows of one command. The others may succeed.
    Rows,
    /// The database failed; no command can succeed.
    Database(StoreError),
}

impl BatchError {
    fn into_store_error(self) -> StoreError {
        match self {
            Self::Rows => StoreError::Refused("a row violates a constraint".to_owned()),
            Self::Database(error) => error,
        }
    }
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        Self::Database(error)
    }
}

impl From<rusqlite::Error> for BatchError {
    fn from(error: rusqlite::Error) -> Self {
        if sqlite_error::is_about_the_rows(&error) { Self::Rows } else { Self::Database(error.into()) }
    }
}

/// Runs the commands until one fails.
fn all_or_none(session: &Session<'_>, batch: &mut Batch) -> Result<()> {
    batch.iter_mut().try_for_each(|step| step.write(session))
}

/// Runs each command on a savepoint, so that only those that violate a constraint fail. Costs a copy of every page touched.
fn each_on_a_savepoint(session: &Session<'_>, batch: &mut Batch) -> Result<()> {
    for step in batch {
        session.execute("SAVEPOINT one", [])?;
        match step.write(session) {
            Ok(()) => {}
            Err(error) if sqlite_error::is_about_the_rows(&error) => {
                session.execute("ROLLBACK TO one", [])?;
                step.refuse(error);
            }
            Err(error) => return Err(error),
        }
        session.execute("RELEASE one", [])?;
    }
    Ok(())
}

/// Checkpoints what no reader needs, unless the log is large, and closes the connection.
/// If the files were replaced, a checkpoint would overwrite what others have written to the new ones.
fn close(connection: Connection, files: &DbFiles) {
    let is_small = || connection.query_row(MEASURE, [], WalSize::read).is_ok_and(|log| !log.is_large());
    let closed = if files.check().is_ok() && is_small() {
        connection.query_row(CHECKPOINT, [], |_| Ok(()))
    } else {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
    };
    if let Err(error) = closed.and_then(|()| connection.close().map_err(|(_, error)| error)) {
        tracing::warn!(%error, "the queue's database was not closed cleanly; nothing is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{OpenMode, QueueOptions};
    use super::super::{enqueue, open};
    use super::*;
    use crate::queue::{JobType, NewJob, Payload};

    fn big_job() -> NewJob {
        let payload = Payload::parse(format!("\"{}\"", "x".repeat(100_000)), 1 << 20).unwrap();
        NewJob::new(JobType::parse("work").unwrap(), payload)
    }

    fn fresh(directory: &tempfile::TempDir) -> (Connection, Arc<DbFiles>) {
        let options = QueueOptions::new(directory.path().join("queue.db"));
        let connection = open::writer(&options, OpenMode::Create).unwrap();
        (connection, Arc::new(DbFiles::of(&options.database).unwrap()))
    }

    async fn add(writer: &WriterThread, jobs: Vec<NewJob>) -> Result<(), StoreError> {
        writer.write(BatchOrder::First, jobs, |db, jobs| enqueue::enqueue(db, jobs).map(drop)).await
    }

    #[tokio::test]
    async fn a_full_disk_fails_only_what_does_not_fit() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, files) = fresh(&directory);
        connection.pragma_update(None, "max_page_count", 100).unwrap();
        let writer = WriterThread::start(connection, TableName::default(), None, files).unwrap();

        let mut stored = 0;
        let refused = loop {
            match add(&writer, vec![big_job()]).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, StoreError::Full(_)) && refused.is_transient(), "{refused:?}");
        let count = |db: &Session<'_>, (): &()| db.first(r#"SELECT count(*) FROM "jobs""#, [], |row| row.get(0));
        let rows: Option<i64> = writer.write(BatchOrder::First, (), count).await.unwrap();
        assert_eq!(rows, Some(stored));

        let make_room = |db: &Session<'_>, (): &()| db.execute(r#"DELETE FROM "jobs" WHERE seq = 1"#, []);
        assert_eq!(writer.write(BatchOrder::First, (), make_room).await.unwrap(), 1);
        add(&writer, vec![big_job()]).await.unwrap();
        writer.close().await;
    }

    #[tokio::test]
    async fn a_command_whose_receiver_was_dropped_does_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, files) = fresh(&directory);
        let (inbox, inbox_end) = mpsc::channel();
        let checkpointer = Arc::new(Checkpointer::start(files.clone()).unwrap());
        let writer = WriterThread {
            inbox,
            thread: Mutex::new(None),
            shared: Arc::default(),
            checkpointer: checkpointer.clone(),
        };
        let mut call = Box::pin(add(&writer, vec![big_job()]));
        std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_pending())).await;
        drop(call);
        drop(writer);
        let table = TableName::default();
        let shared = Arc::default();
        WriterLoop::new(&connection, &table, inbox_end, None, shared, &files, &checkpointer).run();
        let rows: i64 = connection.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0);
    }
}
