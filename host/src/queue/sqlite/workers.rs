//! The workers of a queue, by their files beside the database: which are proved dead, and which attempts they had started.
//!
//! A file is named `DATABASE-jobq-TABLE-WORKER` and is in the directory of the real database, even if that was opened by a
//! link.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::table_name::TableName;
use super::worker_file::{Attempt, EMPTY_FILE, FoundFile, Header, Notes, WorkerFile};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The kernel's boot id: the same in all containers, new after each restart.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The longest file name.
const LONGEST_NAME: usize = 255;

/// A file without a header that is older than this belonged to a worker that was killed while it created the file.
const UNFINISHED: Duration = Duration::from_secs(60);

/// The worker files of one queue, and those that this process holds.
pub(super) struct Workers {
    database: PathBuf,
    directory: PathBuf,
    prefix: OsString,
    boot: String,
    own: RwLock<HashMap<String, Arc<WorkerFile>>>,
    /// Whether an unreadable directory has been logged.
    warned: AtomicBool,
}

/// A worker whose lock was free. It is locked until this is dropped, so that no other process finds it.
#[derive(Debug)]
pub(super) struct StoppedWorker {
    file: FoundFile,
    /// Whether the free lock proves its death. Otherwise it ran under another boot, or runs under another kernel.
    pub(super) is_dead: bool,
}

impl StoppedWorker {
    /// Its name in the `worker` column.
    pub(super) fn name(&self) -> &str {
        &self.file.header.worker
    }

    /// The attempts that it has started.
    pub(super) fn notes(&self) -> io::Result<Notes> {
        self.file.notes()
    }

    /// Removes its file: there is nothing left to rescue.
    pub(super) fn remove_file(&self) {
        self.file.remove();
    }
}

impl Workers {
    /// The workers of the queue `table` in this file.
    pub(super) fn of(database: &Path, table: &TableName) -> io::Result<Self> {
        Ok(Self::on_boot(fs::canonicalize(database)?, table, boot_id()))
    }

    fn on_boot(database: PathBuf, table: &TableName, boot: String) -> Self {
        let mut prefix = database.file_name().unwrap_or_default().to_owned();
        prefix.push(format!("-jobq-{}-", table.as_str().to_ascii_lowercase()));
        let directory = database.parent().unwrap_or(Path::new("/")).to_owned();
        Self { database, directory, prefix, boot, own: RwLock::default(), warned: AtomicBool::new(false) }
    }

    /// Creates and locks the file of a worker of this process.
    ///
    /// # Errors
    /// When it cannot. The worker's death cannot be proved then, and its jobs wait for their leases to expire.
    pub(super) fn register(&self, worker: &str) -> io::Result<()> {
        if self.own().contains_key(worker) {
            return Ok(());
        }
        let header = Header { worker: worker.to_owned(), boot: self.boot.clone() };
        let permissions = self.database.metadata()?.permissions();
        let file = WorkerFile::create(self.path_of(worker), &header, permissions)?;
        self.own_mut().insert(worker.to_owned(), Arc::new(file));
        Ok(())
    }

    /// Notes that the guest of this attempt is being started, if its worker is registered.
    pub(super) fn started(&self, worker: &str, attempt: Attempt) {
        let Some(file) = self.own().get(worker).cloned() else { return };
        if let Err(error) = file.started(attempt) {
            tracing::warn!(
                "cannot note which jobs have started, so all claimed jobs count as started if this daemon dies: {error}"
            );
        }
    }

    /// The end of this attempt was written.
    pub(super) fn ended(&self, worker: &str, attempt: Attempt) {
        if let Some(file) = self.own().get(worker) {
            file.ended(attempt);
        }
    }

    /// Removes the file of a worker of this process that holds no job.
    pub(super) fn retire(&self, worker: &str) {
        if let Some(file) = self.own_mut().remove(worker) {
            file.remove();
        }
    }

    /// Releases the locks of all workers of this process.
    pub(super) fn release_locks(&self) {
        self.own_mut().clear();
    }

    /// The workers of this process.
    pub(super) fn registered(&self) -> Vec<String> {
        self.own().keys().cloned().collect()
    }

    /// The workers whose lock is free, except those of this process.
    pub(super) fn stopped(&self) -> Vec<StoppedWorker> {
        match self.scan() {
            Ok(stopped) => stopped,
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    let directory = self.directory.display();
                    tracing::warn!(
                        "cannot look for dead workers in `{directory}`, so their jobs wait for their leases to expire: {error}"
                    );
                }
                Vec::new()
            }
        }
    }

    /// Whether a worker is proved dead. Doesn't keep others from taking its lock.
    pub(super) fn is_dead(&self, worker: &str) -> bool {
        if self.own().contains_key(worker) {
            return false;
        }
        let Ok(Some(file)) = FoundFile::open(self.path_of(worker)) else { return false };
        file.header.worker == worker && self.is_of_this_boot(&file) && file.is_unlocked().unwrap_or(false)
    }

    /// The attempts that a worker, live or dead, has started; `None` if its file is no proof.
    pub(super) fn notes_of(&self, worker: &str) -> Option<Notes> {
        let file = FoundFile::open(self.path_of(worker)).ok().flatten()?;
        let is_proof = file.header.worker == worker && self.is_of_this_boot(&file);
        if is_proof { file.notes().ok() } else { None }
    }

    fn scan(&self) -> io::Result<Vec<StoppedWorker>> {
        let mut stopped = Vec::new();
        for entry in self.directory.read_dir()? {
            let entry = entry?;
            let is_ours = entry.file_name().as_bytes().starts_with(self.prefix.as_bytes());
            if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                stopped.extend(self.inspect(&entry));
            }
        }
        Ok(stopped)
    }

    /// The worker of a file, if it has stopped. One whose file cannot be opened or locked counts as live.
    fn inspect(&self, entry: &DirEntry) -> Option<StoppedWorker> {
        let Some(file) = FoundFile::open(entry.path()).ok()? else {
            if is_unfinished(entry) {
                _ = fs::remove_file(entry.path());
            }
            return None;
        };
        if self.own().contains_key(&file.header.worker) || !file.lock().ok()? {
            return None;
        }
        let is_dead = self.is_of_this_boot(&file);
        Some(StoppedWorker { file, is_dead })
    }

    /// A file of another boot proves nothing: its notes may not have reached the disk, and its lock may be held under another
    /// kernel.
    fn is_of_this_boot(&self, file: &FoundFile) -> bool {
        !self.boot.is_empty() && file.header.boot == self.boot
    }

    fn path_of(&self, worker: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = worker.chars().map(plain).collect();
        // The end of the name tells the workers of a host apart.
        let room = LONGEST_NAME.saturating_sub(self.prefix.len());
        let mut file = self.prefix.clone();
        file.push(OsStr::new(&name[name.len().saturating_sub(room)..]));
        self.directory.join(file)
    }

    fn own(&self) -> RwLockReadGuard<'_, HashMap<String, Arc<WorkerFile>>> {
        self.own.read()
    }

    fn own_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, Arc<WorkerFile>>> {
        self.own.write()
    }
}

/// The current boot; empty if the kernel does not say.
fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Whether a file without a header was left by a killed worker. A new one may belong to a worker that is starting, and one
/// with other content is not ours.
fn is_unfinished(entry: &DirEntry) -> bool {
    let Ok(found) = entry.metadata() else { return false };
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    let is_blank = || fs::read(entry.path()).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    age.is_some_and(|age| age >= UNFINISHED) && found.len() <= EMPTY_FILE && is_blank()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    use super::*;

    fn workers(dir: &tempfile::TempDir, table: &str, boot: &str) -> Workers {
        let database = dir.path().join("queue.db");
        File::create(&database).unwrap();
        Workers::on_boot(database, &TableName::parse(table).unwrap(), boot.to_owned())
    }

    /// Leaves the file of a dead worker that had started these attempts.
    fn dead(dir: &tempfile::TempDir, worker: &str, boot: &str, attempts: &[Attempt]) {
        let workers = workers(dir, "jobs", boot);
        workers.register(worker).unwrap();
        attempts.iter().for_each(|attempt| workers.started(worker, *attempt));
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<_> =
            dir.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_exists_from_register_to_retire() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir, "Mails", "b");
        workers.register("host-1-0a").unwrap();
        workers.register("host-1-0a").unwrap();
        assert_eq!(names(&dir), ["queue.db", "queue.db-jobq-mails-host-1-0a"]);
        assert_eq!(workers.registered(), ["host-1-0a"]);
        workers.retire("host-1-0a");
        workers.retire("host-1-0b");
        assert_eq!(names(&dir), ["queue.db"]);
        assert_eq!(workers.registered(), [""; 0]);
    }

    #[test]
    fn a_dead_worker_is_found_with_the_attempts_it_had_started() {
        let dir = tempfile::tempdir().unwrap();
        let living = workers(&dir, "jobs", "b");
        living.register("living").unwrap();
        dead(&dir, "dead", "b", &[(7, 1)]);
        let found = living.stopped();
        assert_eq!(found.iter().map(StoppedWorker::name).collect::<Vec<_>>(), ["dead"]);
        assert!(found[0].is_dead);
        let notes = living.notes_of("dead").unwrap();
        assert!(notes.has((7, 1)) && !notes.has((8, 1)));
        assert!(living.stopped().is_empty(), "it is locked meanwhile");
        drop(found);
        let again = living.stopped();
        assert_eq!(again.len(), 1, "the process that found it may have died");
        again[0].remove_file();
        drop(again);
        assert_eq!(names(&dir), ["queue.db", "queue.db-jobq-jobs-living"]);
        assert!(workers(&dir, "jobs", "b").stopped().is_empty(), "the live one is not found dead by another process");
    }

    #[test]
    fn the_notes_of_a_live_worker_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let living = workers(&dir, "jobs", "b");
        living.register("a b").unwrap();
        living.register("a_b").unwrap_err();
        living.started("a b", (7, 1));
        assert!(living.notes_of("a b").unwrap().has((7, 1)));
        assert_eq!(living.notes_of("a_b"), None, "the same file name proves nothing");
        assert_eq!(living.notes_of("nobody"), None);
    }

    #[test]
    fn a_file_of_another_boot_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        dead(&dir, "dead", "b", &[(7, 1)]);
        for boot in ["c", ""] {
            let workers = workers(&dir, "jobs", boot);
            assert!(!workers.stopped()[0].is_dead);
            assert_eq!(workers.notes_of("dead"), None);
        }
        dead(&dir, "nameless", "", &[(7, 1)]);
        assert_eq!(workers(&dir, "jobs", "").notes_of("nameless"), None);
    }

    #[test]
    fn workers_of_other_queues_in_the_same_file_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        dead(&dir, "dead", "b", &[]);
        assert!(workers(&dir, "job", "b").stopped().is_empty());
        assert!(workers(&dir, "mails", "b").stopped().is_empty());
        assert_eq!(workers(&dir, "JOBS", "b").stopped().len(), 1, "table names are case-insensitive");
    }

    #[test]
    fn foreign_files_stay_and_unfinished_ones_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir, "jobs", "b");
        let long_ago = FileTimes::new().set_modified(SystemTime::now() - 2 * UNFINISHED);
        let (old, new) = ("queue.db-jobq-jobs-old", "queue.db-jobq-jobs-starting");
        let foreign = "queue.db-jobq-jobs-foreign";
        for (name, text) in [(old, ""), (new, ""), (foreign, "notes of mine")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        for name in [old, foreign] {
            File::open(dir.path().join(name)).unwrap().set_times(long_ago).unwrap();
        }
        fs::create_dir(dir.path().join("queue.db-jobq-jobs-directory")).unwrap();
        assert!(workers.stopped().is_empty());
        let mut left = ["queue.db", foreign, new, "queue.db-jobq-jobs-directory"];
        left.sort_unstable();
        assert_eq!(names(&dir), left);
    }

    #[test]
    fn a_long_name_is_cut_at_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir, "jobs", "b");
        for end in ["a", "b"] {
            workers.register(&format!("{}-{end}", "h".repeat(300))).unwrap();
        }
        assert_eq!(names(&dir).len(), 3);
    }

    #[test]
    fn a_link_to_the_database_leads_to_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        dead(&dir, "dead", &boot_id(), &[]);
        let other = tempfile::tempdir().unwrap();
        let link = other.path().join("link.db");
        std::os::unix::fs::symlink(dir.path().join("queue.db"), &link).unwrap();
        assert_eq!(Workers::of(&link, &TableName::default()).unwrap().stopped().len(), 1);
    }
}
