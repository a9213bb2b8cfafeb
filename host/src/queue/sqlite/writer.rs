//! The one thread that writes: takes all commands that wait into one transaction and answers after its commit.
//!
//! One connection, because SQLite has one writer anyway and waits for its lock unfairly; one commit for many commands,
//! because a durable commit costs as much as a hundred of them. Nothing is delayed to fill a batch: while one commits,
//! the next gathers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use rusqlite::{Connection, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::session::Session;
use super::{TableName, claim, fault};
use crate::queue::{Claim, Claims, StandingClaim, StoreError};

/// More commands than this wait for the next transaction.
const MOST: usize = 1024;

/// More answers than this are given by the runtime, not by the thread: to wake a task from outside costs several times as much.
const FEW: usize = 4;

/// How often somebody is told that a foreign lock is still waited for.
const REMINDER: Duration = Duration::from_secs(5);

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
    standing: Mutex<Option<StandingClaim>>,
}

impl Common {
    fn standing(&self) -> MutexGuard<'_, Option<StandingClaim>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Message {
    Do(Box<dyn Step>),
    Close,
}

impl Writer {
    pub(super) fn start(connection: Connection, table: TableName, patience: Option<Duration>) -> io::Result<Self> {
        let (inbox, waiting) = mpsc::channel();
        let common = Arc::<Common>::default();
        let theirs = common.clone();
        let serve = move || {
            Desk { session: Session::new(&connection, &table), waiting, patience, common: theirs }.serve();
            close(connection);
        };
        let thread = thread::Builder::new().name("jobq-writer".to_owned()).spawn(serve)?;
        Ok(Self { inbox, thread: Mutex::new(Some(thread)), common })
    }

    /// Transactions that were committed since the start; those that only looked do not count.
    pub(super) fn commits(&self) -> u64 {
        self.common.commits.load(Ordering::Relaxed)
    }

    /// Makes `claim` in the next transaction that adds jobs.
    pub(super) fn stand_by(&self, claim: StandingClaim) {
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
    patience: Option<Duration>,
    common: Arc<Common>,
}

impl Desk<'_> {
    fn serve(&self) {
        while let Ok(message) = self.waiting.recv() {
            let (batch, closing) = self.gather(message);
            let batch = self.look(batch);
            if !batch.is_empty() {
                self.write(batch);
            }
            if closing {
                return;
            }
        }
    }

    /// All that waits now, in the order in which it shall run, and whether to stop after it.
    fn gather(&self, first: Message) -> (Batch, bool) {
        let mut batch = Batch::new();
        let mut next = Some(first);
        while let Some(Message::Do(step)) = next {
            if !step.is_abandoned() {
                batch.push(step);
            }
            if batch.len() == MOST {
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
        if let Err(error) = self.session.execute("BEGIN", []) {
            Answers { batch, committed: Err(error.into()) }.give(self.common.runtime.get());
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
        let committed = committed.map_err(Failure::into_store_error);
        Answers { batch, committed }.give(self.common.runtime.get());
    }

    fn transact(&self, batch: &mut Batch, run: fn(&Session<'_>, &mut Batch) -> Result<()>) -> Result<(), Failure> {
        self.begin()?;
        let done = run(&self.session, batch).and_then(|()| self.session.execute("COMMIT", []));
        match done {
            Ok(_) => _ = self.common.commits.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.roll_back(),
        }
        done.map(|_| ()).map_err(Failure::from)
    }

    /// Takes the write lock, waiting for whoever holds it as long as patience lasts.
    fn begin(&self) -> Result<(), Failure> {
        let started = Instant::now();
        let mut reminder = REMINDER;
        loop {
            match self.session.execute("BEGIN IMMEDIATE", []) {
                Ok(_) => break,
                Err(error) if !fault::is_busy(&error) => return Err(Failure::from(error)),
                Err(_) => {}
            }
            let waited = started.elapsed();
            if self.patience.is_some_and(|patience| waited >= patience) {
                return Err(Failure::Database(StoreError::Busy));
            }
            if waited >= reminder {
                tracing::warn!(
                    seconds = waited.as_secs(),
                    "waiting for another process that holds the database's lock"
                );
                reminder += REMINDER;
            }
        }
        self.session.tick();
        Ok(())
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

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        if fault::is_about_the_rows(&error) { Self::Rows } else { Self::Database(error.into()) }
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
            Err(error) if fault::is_about_the_rows(&error) => {
                session.execute("ROLLBACK TO one", [])?;
                step.refuse(error);
            }
            Err(error) => return Err(error),
        }
        session.execute("RELEASE one", [])?;
    }
    Ok(())
}

/// Writes the log back into the file, as far as no reader needs it.
fn close(connection: Connection) {
    let checkpoint = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = checkpoint.and_then(|()| connection.close().map_err(|(_, error)| error)) {
        tracing::warn!(%error, "the queue's database was not closed cleanly; nothing is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OpenMode, Options, enqueue, open};
    use super::*;
    use crate::queue::{JobType, NewJob, Payload};

    fn big_job() -> NewJob {
        let payload = Payload::parse(format!("\"{}\"", "x".repeat(100_000)), 1 << 20).unwrap();
        NewJob::new(JobType::parse("work").unwrap(), payload)
    }

    async fn add(writer: &Writer, jobs: Vec<NewJob>) -> Result<(), StoreError> {
        writer.write(Place::First, jobs, |db, jobs| enqueue::enqueue(db, jobs).map(drop)).await
    }

    #[tokio::test]
    async fn a_full_disk_fails_what_does_not_fit_and_loses_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let connection = open::writer(&Options::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
        connection.pragma_update(None, "max_page_count", 100).unwrap();
        let writer = Writer::start(connection, TableName::default(), None).unwrap();

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
        let connection = open::writer(&Options::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
        let (inbox, waiting) = mpsc::channel();
        let writer = Writer { inbox, thread: Mutex::new(None), common: Arc::default() };
        let mut call = Box::pin(add(&writer, vec![big_job()]));
        std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_pending())).await;
        drop(call);
        drop(writer);
        let table = TableName::default();
        let common = Arc::default();
        Desk { session: Session::new(&connection, &table), waiting, patience: None, common }.serve();
        let rows: i64 = connection.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0);
    }
}
