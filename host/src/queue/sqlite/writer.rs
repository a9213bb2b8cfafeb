//! The one thread that writes: takes all commands that wait into one transaction and answers after its commit.
//!
//! One connection, because SQLite has one writer anyway and waits for its lock unfairly; one commit for many commands,
//! because a durable commit costs as much as a hundred of them. Nothing is delayed to fill a batch: while one commits,
//! the next gathers.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::checkpoint::{Advice, Call, Checkpointer, Log, MEASURE, WRITE_BACK};
use super::db_files::FilePlace;
use super::file_change::{Stamps, Suspicion};
use super::lock_wait::{GivenUp, LockWait};
use super::pacer::Pacer;
use super::session::Session;
use super::{TableName, claim, sqlite_error};
use crate::queue::{Claim, Claims, ParkedClaim, StoreError};

/// More commands than this wait for the next transaction.
const MOST: usize = 1024;

/// More answers than this are given by the runtime, not by the thread: to wake a task from outside costs several times as much.
const FEW: usize = 4;

/// Another number whenever another connection has committed.
const DATA_VERSION: &str = "PRAGMA data_version";

/// The log grows by a few megabytes at most meanwhile.
const BETWEEN_MEASURES: Duration = Duration::from_millis(10);

/// Where a command stands among those of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Adds jobs, which a standing claim may take in the same transaction.
    Added,
    /// Before all that name a job.
    First,
    /// By the row of its job, so that neighbouring pages are written together.
    Row(i64),
    /// After everything that may add to what it looks for.
    Last,
}

/// What a verb does in a transaction.
type Write<R, T> = fn(&Session<'_>, &R) -> Result<T>;

/// The answer of a verb that has nothing to write now.
type Look<R, T> = fn(&Session<'_>, &R) -> Result<Option<T>>;

/// The way to the thread.
pub(super) struct Writer {
    inbox: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
    common: Arc<Common>,
}

/// What both sides know.
#[derive(Default)]
struct Common {
    /// Where the first command came from.
    runtime: OnceLock<Handle>,
    commits: AtomicU64,
    standing: Mutex<Option<ParkedClaim>>,
}

impl Common {
    fn standing(&self) -> MutexGuard<'_, Option<ParkedClaim>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Message {
    Do(Box<dyn Step>),
    Close,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        table: TableName,
        patience: Option<Duration>,
        file: Arc<FilePlace>,
    ) -> io::Result<Self> {
        let (inbox, waiting) = mpsc::channel();
        let common = Arc::<Common>::default();
        let theirs = common.clone();
        let checkpointer = Checkpointer::start(file.clone())?;
        let serve = move || {
            Desk::new(&connection, &table, waiting, patience, theirs, &file, &checkpointer).serve();
            checkpointer.close();
            close(connection, &file);
        };
        let thread = thread::Builder::new().name("jobq-writer".to_owned()).spawn(serve)?;
        Ok(Self { inbox, thread: Mutex::new(Some(thread)), common })
    }

    /// Transactions that were committed since the start; those that only looked do not count.
    pub(super) fn commits(&self) -> u64 {
        self.common.commits.load(Ordering::Relaxed)
    }

    /// Makes `claim` in the next transaction that adds jobs.
    pub(super) fn park_claim(&self, claim: ParkedClaim) {
        *self.common.standing() = Some(claim);
    }

    /// Runs `write` in the next transaction.
    ///
    /// It may run twice: a batch in which a command fails is rolled back and done again, each command on its own savepoint.
    pub(super) async fn write<R, T>(&self, place: Place, request: R, write: Write<R, T>) -> Result<T, StoreError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.send(place, request, None, write).await
    }

    /// Runs `write` in the next transaction, unless nobody else writes and `look` has the answer without.
    pub(super) async fn look_then_write<R, T>(
        &self,
        place: Place,
        request: R,
        look: Look<R, T>,
        write: Write<R, T>,
    ) -> Result<T, StoreError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.send(place, request, Some(look), write).await
    }

    async fn send<R, T>(
        &self,
        place: Place,
        request: R,
        look: Option<Look<R, T>>,
        write: Write<R, T>,
    ) -> Result<T, StoreError>
    where
        R: Send + 'static,
        T: Send + 'static,
    {
        self.common.runtime.get_or_init(Handle::current);
        let (reply, answer) = oneshot::channel();
        let command = Command { place, request, look, write, outcome: None, reply };
        self.inbox.send(Message::Do(Box::new(command))).map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Lets it finish what waits, write the log back into the file, and end.
    pub(super) async fn close(&self) {
        // A thread that is gone has closed already.
        let _ = self.inbox.send(Message::Close);
        let thread = self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(thread) = thread else { return };
        if !matches!(tokio::task::spawn_blocking(|| thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the thread that writes the queue panicked");
        }
    }
}

/// A verb with its arguments, on its way through a transaction.
struct Command<R, T> {
    place: Place,
    request: R,
    look: Option<Look<R, T>>,
    write: Write<R, T>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

/// A command whatever its verb.
trait Step: Send {
    fn place(&self) -> Place;
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    fn can_look(&self) -> bool;
    /// Whether looking was enough.
    fn look(&mut self, session: &Session<'_>) -> bool;
    fn write(&mut self, session: &Session<'_>) -> Result<()>;
    /// Keeps the error for the answer.
    fn refuse(&mut self, error: rusqlite::Error);
    fn answer(self: Box<Self>, committed: &Result<(), StoreError>);
}

impl<R: Send, T: Send> Step for Command<R, T> {
    fn place(&self) -> Place {
        self.place
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn can_look(&self) -> bool {
        self.look.is_some()
    }

    fn look(&mut self, session: &Session<'_>) -> bool {
        self.outcome = self.look.and_then(|look| look(session, &self.request).transpose());
        self.outcome.is_some()
    }

    fn write(&mut self, session: &Session<'_>) -> Result<()> {
        self.outcome = Some(Ok((self.write)(session, &self.request)?));
        Ok(())
    }

    fn refuse(&mut self, error: rusqlite::Error) {
        self.outcome = Some(Err(error));
    }

    fn answer(self: Box<Self>, committed: &Result<(), StoreError>) {
        let answer = match (committed, self.outcome) {
            (Err(error), _) => Err(error.clone()),
            (Ok(()), Some(outcome)) => outcome.map_err(StoreError::from),
            (Ok(()), None) => Err(StoreError::Closed),
        };
        // Whoever stopped waiting does not want to know.
        let _ = self.reply.send(answer);
    }
}

type Batch = Vec<Box<dyn Step>>;

/// What has been decided and not yet been told. Tells it when it is dropped, wherever that is.
struct Answers {
    batch: Batch,
    committed: Result<(), StoreError>,
}

impl Answers {
    /// Lets the runtime tell it, where there is much to tell.
    fn give(self, runtime: Option<&Handle>) {
        if let Some(runtime) = runtime.filter(|_| self.batch.len() > FEW) {
            runtime.spawn(async move { drop(self) });
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.batch.drain(..).for_each(|step| step.answer(&self.committed));
    }
}

/// The thread's side.
struct Desk<'c> {
    session: Session<'c>,
    waiting: Receiver<Message>,
    patience: LockWait,
    common: Arc<Common>,
    file: &'c FilePlace,
    checkpointer: &'c Checkpointer,
    pacer: RefCell<Pacer>,
    stamps: RefCell<Stamps>,
    others_committed: Cell<bool>,
    /// What SQLite said when it was last asked whether others have committed.
    data_version: Cell<Option<i64>>,
    /// When the log was measured for the last time.
    measured: Cell<Option<Instant>>,
}

impl<'c> Desk<'c> {
    fn new(
        connection: &'c Connection,
        table: &'c TableName,
        waiting: Receiver<Message>,
        patience: Option<Duration>,
        common: Arc<Common>,
        file: &'c FilePlace,
        checkpointer: &'c Checkpointer,
    ) -> Self {
        Self {
            session: Session::new(connection, table),
            waiting,
            patience: LockWait::to_write(patience),
            common,
            file,
            checkpointer,
            pacer: RefCell::default(),
            stamps: RefCell::default(),
            others_committed: Cell::new(false),
            data_version: Cell::new(None),
            measured: Cell::new(None),
        }
    }

    fn serve(&self) {
        while let Ok(message) = self.waiting.recv() {
            let (batch, mut closing) = self.gather(Batch::new(), Some(message));
            let mut batch = self.look(batch);
            if !batch.is_empty() {
                if !closing {
                    (batch, closing) = self.leave_others_their_turn(batch);
                }
                self.write(batch);
                self.see_to_the_log();
            }
            if closing {
                return;
            }
        }
    }

    /// Sees to the log while nobody waits for an answer.
    fn see_to_the_log(&self) {
        let now = Instant::now();
        if self.measured.get().is_some_and(|measured| now - measured < BETWEEN_MEASURES) {
            return;
        }
        self.measured.set(Some(now));
        if self.file.check().is_err() {
            return;
        }
        let done = self.session.first(MEASURE, [], Log::read).and_then(|log| self.write_back_or_delegate(log));
        if let Err(error) = done {
            tracing::warn!("cannot write the write-ahead log back into the database: {}", self.failed(error));
        }
    }

    fn write_back_or_delegate(&self, log: Option<Log>) -> Result<()> {
        let Some(log) = log else { return Ok(()) };
        self.stamp(log);
        match log.advice() {
            Advice::Wait => {}
            Advice::Delegate => self.checkpointer.call(Call::WriteBack),
            Advice::WriteBack => {
                self.session.first(WRITE_BACK, [], Log::read)?;
                self.session.first(MEASURE, [], Log::read)?.into_iter().for_each(|log| self.stamp(log));
            }
        }
        Ok(())
    }

    /// Looks whether the file changes by itself.
    fn stamp(&self, log: Log) {
        let mut stamps = self.stamps.borrow_mut();
        stamps.committed(log, self.others_committed.take());
        let suspicion = self.file.stamp().map(|stamp| stamps.look(Instant::now(), stamp));
        if let Some(Suspicion::Examine { resized }) = suspicion {
            self.checkpointer.call(Call::Examine { resized });
        }
    }

    /// Waits as long as the lock should stay free for others, and takes what comes meanwhile into the batch.
    fn leave_others_their_turn(&self, batch: Batch) -> (Batch, bool) {
        match self.pacer.borrow().pause(Instant::now()) {
            Some(pause) => thread::sleep(pause),
            None => return (batch, false),
        }
        self.gather(batch, self.waiting.try_recv().ok())
    }

    /// All that waits now, in the order in which it shall run, and whether to stop after it.
    fn gather(&self, mut batch: Batch, mut next: Option<Message>) -> (Batch, bool) {
        while let Some(Message::Do(step)) = next {
            if !step.is_abandoned() {
                batch.push(step);
            }
            if batch.len() >= MOST {
                next = None;
                break;
            }
            next = self.waiting.try_recv().ok();
        }
        if batch.iter().any(|step| step.place() == Place::Added) {
            batch.extend(self.standing_claim());
        }
        batch.sort_by_key(|step| step.place());
        (batch, matches!(next, Some(Message::Close)))
    }

    /// The claim that somebody left for when jobs are added.
    fn standing_claim(&self) -> Option<Box<dyn Step>> {
        let (request, reply) = self.common.standing().take()?.take()?;
        let write: Write<Claim, Claims> = claim::claim;
        Some(Box::new(Command { place: Place::Last, request, look: None, write, outcome: None, reply }))
    }

    /// Answers what needs no write, where nothing in the batch does, and returns the rest.
    fn look(&self, batch: Batch) -> Batch {
        if batch.is_empty() || !batch.iter().all(|step| step.can_look()) {
            return batch;
        }
        let begun =
            self.file.check().and_then(|()| self.session.execute("BEGIN", []).map_err(|error| self.failed(error)));
        if let Err(error) = begun {
            Answers { batch, committed: Err(error) }.give(self.common.runtime.get());
            return Batch::new();
        }
        self.session.tick();
        let mut rest = Batch::new();
        for mut step in batch {
            if step.look(&self.session) {
                step.answer(&Ok(()));
            } else {
                rest.push(step);
            }
        }
        self.roll_back();
        rest
    }

    fn write(&self, mut batch: Batch) {
        let committed = self.transact(&mut batch, together).or_else(|error| match error {
            Failure::Rows => self.transact(&mut batch, apart),
            failure => Err(failure),
        });
        let committed = committed.map_err(|failure| self.file.over(failure.into_store_error()));
        Answers { batch, committed }.give(self.common.runtime.get());
    }

    fn transact(&self, batch: &mut Batch, run: fn(&Session<'_>, &mut Batch) -> Result<()>) -> Result<(), Failure> {
        self.begin()?;
        let begun = Instant::now();
        let done = self.run(batch, run);
        if done.is_err() {
            self.roll_back();
        }
        let now = Instant::now();
        self.pacer.borrow_mut().released(now, now - begun);
        done
    }

    /// All between the taking of the lock and its return. What was committed to files that are no longer there was not.
    fn run(&self, batch: &mut Batch, run: fn(&Session<'_>, &mut Batch) -> Result<()>) -> Result<(), Failure> {
        self.file.check()?;
        self.note_foreign_commits()?;
        run(&self.session, batch)?;
        self.session.execute("COMMIT", [])?;
        self.file.check()?;
        self.common.commits.fetch_add(1, Ordering::Relaxed);
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

    /// Takes the write lock, waiting for whoever holds it as long as patience lasts.
    fn begin(&self) -> Result<(), Failure> {
        self.file.check()?;
        self.patience.last(|| self.session.execute("BEGIN IMMEDIATE", [])).map_err(|why| match why {
            GivenUp::Busy => Failure::Database(StoreError::Busy),
            GivenUp::Failed(error) => Failure::from(error),
        })?;
        self.session.tick();
        Ok(())
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        self.file.over(error.into())
    }

    /// Ends the transaction without a trace, where SQLite has not done so itself.
    fn roll_back(&self) {
        if self.session.connection().is_autocommit() {
            return;
        }
        if let Err(error) = self.session.execute("ROLLBACK", []) {
            tracing::error!(%error, "the queue's transaction cannot be rolled back");
        }
    }
}

/// Why a batch was not committed.
enum Failure {
    /// One of its commands broke a rule of the table; the others may stand.
    Rows,
    /// The database failed them all.
    Database(StoreError),
}

impl Failure {
    fn into_store_error(self) -> StoreError {
        match self {
            Self::Rows => StoreError::Refused("a row breaks a rule of the table".to_owned()),
            Self::Database(error) => error,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Database(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        if sqlite_error::is_about_the_rows(&error) { Self::Rows } else { Self::Database(error.into()) }
    }
}

/// One after the other; the first that fails fails all.
fn together(session: &Session<'_>, batch: &mut Batch) -> Result<()> {
    batch.iter_mut().try_for_each(|step| step.write(session))
}

/// Each on its own savepoint, so that one that breaks a rule is alone in failing. Costs a copy of every page it touches.
fn apart(session: &Session<'_>, batch: &mut Batch) -> Result<()> {
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

/// Writes the log back into the file, as far as no reader needs it, unless there is much of it: the next daemon does that.
/// Where the files are no longer those that were opened it must not be: what others have written to theirs would be lost.
fn close(connection: Connection, file: &FilePlace) {
    let is_short = || connection.query_row(MEASURE, [], Log::read).is_ok_and(|log| !log.is_long());
    let closed = if file.check().is_ok() && is_short() {
        connection.query_row(WRITE_BACK, [], |_| Ok(()))
    } else {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
    };
    if let Err(error) = closed.and_then(|()| connection.close().map_err(|(_, error)| error)) {
        tracing::warn!(%error, "the queue's database was not closed cleanly; nothing is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OpenMode, QueueOptions, enqueue, open};
    use super::*;
    use crate::queue::{JobType, NewJob, Payload};

    fn big_job() -> NewJob {
        let payload = Payload::parse(format!("\"{}\"", "x".repeat(100_000)), 1 << 20).unwrap();
        NewJob::new(JobType::parse("work").unwrap(), payload)
    }

    fn fresh(directory: &tempfile::TempDir) -> (Connection, Arc<FilePlace>) {
        let options = QueueOptions::new(directory.path().join("queue.db"));
        let connection = open::writer(&options, OpenMode::Create).unwrap();
        (connection, Arc::new(FilePlace::of(&options.database).unwrap()))
    }

    async fn add(writer: &Writer, jobs: Vec<NewJob>) -> Result<(), StoreError> {
        writer.write(Place::First, jobs, |db, jobs| enqueue::enqueue(db, jobs).map(drop)).await
    }

    #[tokio::test]
    async fn a_full_disk_fails_what_does_not_fit_and_loses_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, file) = fresh(&directory);
        connection.pragma_update(None, "max_page_count", 100).unwrap();
        let writer = Writer::start(connection, TableName::default(), None, file).unwrap();

        let mut stored = 0;
        let refused = loop {
            match add(&writer, vec![big_job()]).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, StoreError::Full(_)) && refused.is_transient(), "{refused:?}");
        let count = |db: &Session<'_>, (): &()| db.first(r#"SELECT count(*) FROM "jobs""#, [], |row| row.get(0));
        let rows: Option<i64> = writer.write(Place::First, (), count).await.unwrap();
        assert_eq!(rows, Some(stored));

        let make_room = |db: &Session<'_>, (): &()| db.execute(r#"DELETE FROM "jobs" WHERE seq = 1"#, []);
        assert_eq!(writer.write(Place::First, (), make_room).await.unwrap(), 1);
        add(&writer, vec![big_job()]).await.unwrap();
        writer.close().await;
    }

    #[tokio::test]
    async fn a_command_that_nobody_waits_for_is_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, file) = fresh(&directory);
        let (inbox, waiting) = mpsc::channel();
        let writer = Writer { inbox, thread: Mutex::new(None), common: Arc::default() };
        let mut call = Box::pin(add(&writer, vec![big_job()]));
        std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_pending())).await;
        drop(call);
        drop(writer);
        let table = TableName::default();
        let common = Arc::default();
        let checkpointer = Checkpointer::start(file.clone()).unwrap();
        Desk::new(&connection, &table, waiting, None, common, &file, &checkpointer).serve();
        let rows: i64 = connection.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0);
    }
}
