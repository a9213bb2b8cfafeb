//! The file that a worker keeps beside the database: a lock that proves its death, and notes of the attempts it started.
//!
//! The worker holds `flock` on it. The kernel releases the lock when the process ends, however it ends, but not while it is
//! only stopped. A process that gets the lock knows that the worker is dead. This works across containers on one kernel that
//! share the directory. The header names the boot of that kernel; a file of another boot proves nothing.
//!
//! After the header there is a note for each attempt whose guest was started and whose end was not written. A note is one
//! write into the page cache: it takes about a microsecond and survives the process, though not the machine.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The first line. It changes with the version of the format.
const FIRST_LINE: &str = "jobq worker file, version 1";

/// Bytes before the notes, padded with zeros.
const HEADER: usize = 1024;

/// Bytes of a note. Divides a page, so that no note crosses two.
const NOTE: usize = 32;

/// Notes that a file is extended by at once, so that a full disk does not matter later.
const EXTENT: u64 = 4096;

/// Bytes of a file without notes.
pub(super) const EMPTY_FILE: u64 = offset(EXTENT);

/// The attempt of a note: row and fencing token. No other attempt has the same.
pub(super) type Attempt = (i64, i64);

/// The first lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The worker's name.
    pub(super) worker: String,
    /// The boot of the kernel that it runs under.
    pub(super) boot: String,
}

impl Header {
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let text = format!("{FIRST_LINE}\nworker {}\nboot {}\n", self.worker, self.boot);
        let fits = text.len() < HEADER && text.lines().count() == 3;
        let mut bytes = text.into_bytes();
        bytes.resize(HEADER, 0);
        if fits {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "the worker's name does not fit on a line"))
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes.get(..HEADER)?.split(|byte| *byte == 0).next()?).ok()?;
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (first, worker, boot) = (lines.next()?, lines.next()?, lines.next()?);
        let header = Self { worker: worker.strip_prefix("worker ")?.into(), boot: boot.strip_prefix("boot ")?.into() };
        (first == FIRST_LINE && lines.next().is_none()).then_some(header)
    }
}

/// A worker's own file. Dropping it releases the lock and leaves the file.
#[derive(Debug)]
pub(super) struct WorkerFile {
    file: File,
    path: PathBuf,
    slots: Mutex<NoteSlots>,
}

/// Which slot of the file has the note of which attempt.
#[derive(Debug, Default)]
struct NoteSlots {
    taken: HashMap<Attempt, u64>,
    free: Vec<u64>,
    /// The first slot that was never used.
    unused: u64,
    /// The number of slots in the file.
    end: u64,
    /// A note could not be written, so the file was removed: it would prove that a guest had not started.
    disabled: bool,
}

impl WorkerFile {
    /// Creates and locks the file, with the permissions of the database.
    ///
    /// # Errors
    /// When it exists, cannot be created or cannot be locked.
    pub(super) fn create(path: PathBuf, header: &Header, permissions: Permissions) -> io::Result<Self> {
        let mut bytes = header.to_bytes()?;
        let mode = permissions.mode() & 0o666;
        let file = File::options().read(true).write(true).create_new(true).mode(mode).open(&path)?;
        // No process locks a file without a header, so the lock is ours before there is one.
        let created = file.try_lock().map_err(io::Error::from).and_then(|()| {
            file.set_permissions(Permissions::from_mode(mode))?;
            bytes.resize(HEADER + NOTE * EXTENT as usize, 0);
            file.write_all_at(&bytes, 0)
        });
        if let Err(error) = created {
            _ = fs::remove_file(&path);
            return Err(error);
        }
        let slots = Mutex::new(NoteSlots { end: EXTENT, ..NoteSlots::default() });
        Ok(Self { file, path, slots })
    }

    /// Notes that the guest of this attempt is being started.
    ///
    /// # Errors
    /// The first time that a note cannot be written. The file is then removed: without it, every attempt counts as started.
    pub(super) fn started(&self, attempt: Attempt) -> io::Result<()> {
        let written = self.slot(attempt).and_then(|slot| match slot {
            Some(slot) => self.file.write_all_at(&note(attempt), offset(slot)),
            None => Ok(()),
        });
        if written.is_err() && !std::mem::replace(&mut self.slots().disabled, true) {
            self.remove();
            return written;
        }
        Ok(())
    }

    /// The end of this attempt was written: its slot may be reused.
    pub(super) fn ended(&self, attempt: Attempt) {
        let mut slots = self.slots();
        if let Some(slot) = slots.taken.remove(&attempt) {
            slots.free.push(slot);
        }
    }

    /// Removes the file, so that this worker is never taken for dead.
    pub(super) fn remove(&self) {
        remove(&self.path, &self.file);
    }

    /// Assigns a slot, extending the file if necessary; `None` if notes are disabled.
    fn slot(&self, attempt: Attempt) -> io::Result<Option<u64>> {
        let mut slots = self.slots();
        if slots.disabled {
            return Ok(None);
        }
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                if slots.unused == slots.end {
                    self.file.write_all_at(&vec![0; NOTE * EXTENT as usize], offset(slots.end))?;
                    slots.end += EXTENT;
                }
                slots.unused += 1;
                slots.unused - 1
            }
        };
        slots.taken.insert(attempt, slot);
        Ok(Some(slot))
    }

    fn slots(&self) -> MutexGuard<'_, NoteSlots> {
        self.slots.lock()
    }
}

impl Drop for WorkerFile {
    /// Closing is not enough: a child process that has not yet called `exec` may have a copy of the descriptor.
    fn drop(&mut self) {
        _ = self.file.unlock();
    }
}

/// The file of any worker, as other processes see it.
#[derive(Debug)]
pub(super) struct FoundFile {
    file: File,
    path: PathBuf,
    /// Its header.
    pub(super) header: Header,
}

impl Drop for FoundFile {
    fn drop(&mut self) {
        _ = self.file.unlock();
    }
}

/// The attempts that a worker has started and not ended, and some that it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes(HashSet<Attempt>);

impl FoundFile {
    /// Opens a file; `None` if it has no header: it is being created, was never finished, or has another version.
    pub(super) fn open(path: PathBuf) -> io::Result<Option<Self>> {
        // Read access is enough for the lock.
        let file = File::open(&path)?;
        let mut bytes = [0; HEADER];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Header::parse(&bytes).map(|header| Self { file, path, header })),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock; `false` if the worker holds it, or another process that found the worker dead.
    pub(super) fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            // The previous holder of the lock may have removed the file since it was opened here.
            Ok(()) => Ok(is_at(&self.path, &self.file)),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether neither the worker nor a process that found it dead holds the lock. Several processes can ask at once.
    pub(super) fn is_unlocked(&self) -> io::Result<bool> {
        match self.file.try_lock_shared() {
            Ok(()) => Ok(is_at(&self.path, &self.file)),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// All complete notes.
    pub(super) fn notes(&self) -> io::Result<Notes> {
        let size = usize::try_from(self.file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size.saturating_sub(HEADER)];
        self.file.read_exact_at(&mut bytes, offset(0))?;
        Ok(Notes(bytes.chunks_exact(NOTE).filter_map(attempt).collect()))
    }

    /// Removes the file. The lock is held until this is dropped.
    pub(super) fn remove(&self) {
        remove(&self.path, &self.file);
    }
}

impl Notes {
    /// Whether the guest of this attempt was started.
    pub(super) fn has(&self, attempt: Attempt) -> bool {
        self.0.contains(&attempt)
    }
}

const fn offset(slot: u64) -> u64 {
    HEADER as u64 + slot * NOTE as u64
}

/// Both numbers and their complements, so that neither zeros nor a torn write passes for a note.
fn note((job, token): Attempt) -> [u8; NOTE] {
    let mut bytes = [0; NOTE];
    for (part, number) in bytes.chunks_exact_mut(8).zip([job, token, !job, !token]) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn attempt(bytes: &[u8]) -> Option<Attempt> {
    let number = |at: usize| Some(i64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let attempt = (number(0)?, number(8)?);
    (note(attempt) == bytes).then_some(attempt)
}

/// Removes a file, unless its name now belongs to another file.
fn remove(path: &Path, file: &File) {
    if is_at(path, file)
        && let Err(error) = fs::remove_file(path)
    {
        // Harmless; it is retried at every scan.
        tracing::debug!("cannot remove `{}`: {error}", path.display());
    }
}

fn is_at(path: &Path, file: &File) -> bool {
    let identity = |file: &fs::Metadata| (file.dev(), file.ino());
    match (path.symlink_metadata(), file.metadata()) {
        (Ok(named), Ok(open)) => identity(&named) == identity(&open),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn header() -> Header {
        Header { worker: "host-1-00000001".to_owned(), boot: "b".to_owned() }
    }

    fn create(dir: &tempfile::TempDir) -> WorkerFile {
        WorkerFile::create(dir.path().join("file"), &header(), Permissions::from_mode(0o600)).unwrap()
    }

    fn found(dir: &tempfile::TempDir) -> FoundFile {
        FoundFile::open(dir.path().join("file")).unwrap().unwrap()
    }

    fn notes(attempts: &[Attempt]) -> Notes {
        Notes(attempts.iter().copied().collect())
    }

    #[test]
    fn the_file_names_its_worker_and_is_locked_while_the_worker_lives() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        assert_eq!(found(&dir).header, header());
        assert!(!found(&dir).lock().unwrap());
        drop(own);
        assert!(found(&dir).lock().unwrap());
    }

    #[test]
    fn the_file_has_the_permissions_of_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let _own = WorkerFile::create(path.clone(), &header(), Permissions::from_mode(0o100_666)).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666, "whatever the umask");
    }

    #[test]
    fn a_second_worker_of_the_same_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        own.started((1, 1)).unwrap();
        let again = WorkerFile::create(dir.path().join("file"), &header(), Permissions::from_mode(0o600));
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(1, 1)]));
    }

    #[test]
    fn a_name_that_does_not_fit_on_a_line_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for worker in ["a\nb".to_owned(), "x".repeat(HEADER)] {
            let header = Header { worker, boot: String::new() };
            WorkerFile::create(dir.path().join("file"), &header, Permissions::from_mode(0o600)).unwrap_err();
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_note_is_visible_at_once_and_its_slot_is_reused() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        own.started((7, 1)).unwrap();
        own.started((8, -1)).unwrap();
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(7, 1), (8, -1)]));
        own.ended((7, 1));
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(7, 1), (8, -1)]), "nothing is written");
        own.started((9, 3)).unwrap();
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(9, 3), (8, -1)]));
        own.ended((1, 1));
        own.started((10, 1)).unwrap();
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(9, 3), (8, -1), (10, 1)]));
    }

    #[test]
    fn the_file_grows_with_the_number_of_running_guests() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        let size = || dir.path().join("file").metadata().unwrap().len();
        let empty = size();
        let extent = i64::try_from(EXTENT).unwrap();
        for job in 0..2 * extent {
            own.started((job, 1)).unwrap();
            own.ended((job, 1));
        }
        assert_eq!(size(), empty);
        let many: Vec<Attempt> = (0..=extent).map(|job| (job, 2)).collect();
        many.iter().for_each(|attempt| own.started(*attempt).unwrap());
        assert!(size() > empty);
        assert_eq!(found(&dir).notes().unwrap(), notes(&many));
    }

    #[test]
    fn zeros_and_torn_notes_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        own.started((0, 0)).unwrap();
        own.started((7, 1)).unwrap();
        for torn in 1..NOTE {
            let slot = u64::try_from(torn).unwrap() + 1;
            own.file.write_all_at(&note((77, 77))[..torn], offset(slot)).unwrap();
        }
        own.file.write_all_at(&note((78, 78))[..NOTE - 1], offset(EXTENT)).unwrap();
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(0, 0), (7, 1)]));
    }

    #[test]
    fn a_file_without_a_complete_header_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let whole = header().to_bytes().unwrap();
        let newer = String::from_utf8(whole.clone()).unwrap().replace("version 1", "version 2").into_bytes();
        for bytes in [vec![], vec![0; 2 * HEADER], b"notes of mine".repeat(200), whole[..HEADER - 1].to_vec(), newer] {
            fs::write(&path, bytes).unwrap();
            assert!(FoundFile::open(path.clone()).unwrap().is_none());
        }
        fs::write(&path, whole).unwrap();
        assert!(FoundFile::open(path).unwrap().is_some());
    }

    #[test]
    fn a_note_that_cannot_be_written_removes_the_file_and_fails_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut own = create(&dir);
        own.file = File::open(&own.path).unwrap();
        own.started((1, 1)).unwrap_err();
        own.started((2, 1)).unwrap();
        assert!(!dir.path().join("file").exists(), "it would prove that neither had started");
    }

    #[test]
    fn only_one_process_gets_the_lock_of_a_dead_worker() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            drop(create(&dir));
            let (locked, barrier) = (AtomicUsize::new(0), Barrier::new(4));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let found = found(&dir);
                        barrier.wait();
                        if found.lock().unwrap() {
                            locked.fetch_add(1, Ordering::Relaxed);
                            found.remove();
                        }
                    });
                }
            });
            assert_eq!(locked.into_inner(), 1, "the others got a removed file, or no lock");
            assert!(!dir.path().join("file").exists());
        }
    }

    #[test]
    fn a_new_file_of_the_same_name_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        drop(create(&dir));
        let old = found(&dir);
        assert!(old.lock().unwrap());
        fs::remove_file(dir.path().join("file")).unwrap();
        let _new = create(&dir);
        old.remove();
        assert!(dir.path().join("file").exists());
    }
}
