//! The file that a worker keeps beside the database while it lives: a lock that proves its death, and its start notes.
//!
//! The worker holds `flock` on it. The kernel releases that when the process has ended, however it ended, and not while it
//! is merely stopped: whoever gets the lock knows that the worker is dead. It works across containers that share the
//! directory on one kernel. The header names the boot of that kernel; a file of another boot proves nothing.
//!
//! Behind the header stands a start note for each attempt whose guest was started and whose end is not on record. A note
//! is one write into the page cache: it costs about a microsecond and outlives the process, though not the machine.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first line; another version is another line.
const FIRST_LINE: &str = "jobq worker file, version 1";

/// Bytes in front of the notes. What the text leaves of them is zero.
const HEADER: usize = 1024;

/// Bytes of a note: divides a page, so that no note lies across two.
const NOTE: usize = 32;

/// Notes that a file is given room for at once, so that a full disk does not matter later.
const STRIDE: u64 = 4096;

/// Bytes of a file without a note.
pub(super) const EMPTY_FILE: u64 = offset(STRIDE);

/// The attempt that a note is about: the row and the fencing token, which no other attempt ever has.
pub(super) type Attempt = (i64, i64);

/// What the first lines of a file say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The worker's name.
    pub(super) worker: String,
    /// The boot of the kernel that it ran on.
    pub(super) boot: String,
}

impl Header {
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let text = format!("{FIRST_LINE}\nworker {}\nboot {}\n", self.worker, self.boot);
        let fits = text.len() < HEADER && text.lines().count() == 3;
        let mut bytes = text.into_bytes();
        bytes.resize(HEADER, 0);
        if fits { Ok(bytes) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "the worker's name is no line")) }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes.get(..HEADER)?.split(|byte| *byte == 0).next()?).ok()?;
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (first, worker, boot) = (lines.next()?, lines.next()?, lines.next()?);
        let header = Self { worker: worker.strip_prefix("worker ")?.into(), boot: boot.strip_prefix("boot ")?.into() };
        (first == FIRST_LINE && lines.next().is_none()).then_some(header)
    }
}

/// A worker's own file. To drop it releases the lock and leaves the file.
#[derive(Debug)]
pub(super) struct WorkerFile {
    file: File,
    path: PathBuf,
    places: Mutex<Places>,
}

/// Which attempt's note stands where.
#[derive(Debug, Default)]
struct Places {
    taken: HashMap<Attempt, u64>,
    free: Vec<u64>,
    /// Never used from here on.
    unused: u64,
    /// The file has no room from here on.
    end: u64,
    /// A note could not be written, and the file is gone: it would have said that a guest was not started.
    given_up: bool,
}

impl WorkerFile {
    /// Makes the file and locks it. Everybody who may write the database may do the same with it.
    ///
    /// # Errors
    /// When it exists, cannot be made beside the database, or cannot be locked.
    pub(super) fn create(path: PathBuf, header: &Header, permissions: Permissions) -> io::Result<Self> {
        let mut bytes = header.to_bytes()?;
        let mode = permissions.mode() & 0o666;
        let file = File::options().read(true).write(true).create_new(true).mode(mode).open(&path)?;
        // Nobody else locks a file without a header, so what carries one is locked for as long as its worker lives.
        let made = file.try_lock().map_err(io::Error::from).and_then(|()| {
            file.set_permissions(Permissions::from_mode(mode))?;
            bytes.resize(HEADER + NOTE * STRIDE as usize, 0);
            file.write_all_at(&bytes, 0)
        });
        if let Err(error) = made {
            _ = fs::remove_file(&path);
            return Err(error);
        }
        let places = Mutex::new(Places { end: STRIDE, ..Places::default() });
        Ok(Self { file, path, places })
    }

    /// Notes that the guest of this attempt is being started.
    ///
    /// # Errors
    /// The first time that a note cannot be written. The file is removed then: without it, every attempt counts as started.
    pub(super) fn started(&self, attempt: Attempt) -> io::Result<()> {
        let written = self.place(attempt).and_then(|place| match place {
            Some(place) => self.file.write_all_at(&note(attempt), offset(place)),
            None => Ok(()),
        });
        if written.is_err() && !std::mem::replace(&mut self.places().given_up, true) {
            self.remove();
            return written;
        }
        Ok(())
    }

    /// The end of this attempt is on record: its note says nothing any more and may be written over.
    pub(super) fn ended(&self, attempt: Attempt) {
        let mut places = self.places();
        if let Some(place) = places.taken.remove(&attempt) {
            places.free.push(place);
        }
    }

    /// Removes the file, so that nobody takes this worker for dead.
    pub(super) fn remove(&self) {
        remove(&self.path, &self.file);
    }

    /// A place for the note of an attempt, in a larger file if need be; `None` where notes have been given up.
    fn place(&self, attempt: Attempt) -> io::Result<Option<u64>> {
        let mut places = self.places();
        if places.given_up {
            return Ok(None);
        }
        let place = match places.free.pop() {
            Some(place) => place,
            None => {
                if places.unused == places.end {
                    self.file.write_all_at(&vec![0; NOTE * STRIDE as usize], offset(places.end))?;
                    places.end += STRIDE;
                }
                places.unused += 1;
                places.unused - 1
            }
        };
        places.taken.insert(attempt, place);
        Ok(Some(place))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WorkerFile {
    /// Closing it is not enough while a child of this process that has yet to call `exec` has a copy of the descriptor.
    fn drop(&mut self) {
        _ = self.file.unlock();
    }
}

/// The file of any worker, as others see it.
#[derive(Debug)]
pub(super) struct FoundFile {
    file: File,
    path: PathBuf,
    /// What it says about its worker.
    pub(super) header: Header,
}

impl Drop for FoundFile {
    fn drop(&mut self) {
        _ = self.file.unlock();
    }
}

/// The guests that a worker has started, as far as their end is not on record, and some whose end is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes(HashSet<Attempt>);

impl FoundFile {
    /// Opens a file; `None` where it has no header: it is being made, was never finished, or is of another version.
    pub(super) fn open(path: PathBuf) -> io::Result<Option<Self>> {
        // Enough for the lock, and others may have more of a right to read than to write.
        let file = File::open(&path)?;
        let mut bytes = [0; HEADER];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Header::parse(&bytes).map(|header| Self { file, path, header })),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock; `false` where somebody has it: the worker, or another who found it dead.
    pub(super) fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            // Whoever had the lock before may have removed the file since it was opened here.
            Ok(()) => Ok(is_at(&self.path, &self.file)),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether nobody holds the lock: neither the worker nor another that found it dead. Any number may ask at once.
    pub(super) fn is_unlocked(&self) -> io::Result<bool> {
        match self.file.try_lock_shared() {
            Ok(()) => Ok(is_at(&self.path, &self.file)),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Every note that is whole.
    pub(super) fn notes(&self) -> io::Result<Notes> {
        let size = usize::try_from(self.file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size.saturating_sub(HEADER)];
        self.file.read_exact_at(&mut bytes, offset(0))?;
        Ok(Notes(bytes.chunks_exact(NOTE).filter_map(attempt).collect()))
    }

    /// Removes it. The lock is held until this is dropped.
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

const fn offset(place: u64) -> u64 {
    HEADER as u64 + place * NOTE as u64
}

/// Both numbers and both complements: neither zeros nor half a note can pass for one.
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

/// Removes a file, unless its name is another one's by now.
fn remove(path: &Path, file: &File) {
    if is_at(path, file)
        && let Err(error) = fs::remove_file(path)
    {
        // It does no harm, and is tried again at every look.
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
    fn it_tells_whose_it_is_and_is_locked_while_its_worker_lives() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        assert_eq!(found(&dir).header, header());
        assert!(!found(&dir).lock().unwrap());
        drop(own);
        assert!(found(&dir).lock().unwrap());
    }

    #[test]
    fn what_others_may_do_with_the_database_they_may_do_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let _own = WorkerFile::create(path.clone(), &header(), Permissions::from_mode(0o100_666)).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666, "whatever the umask");
    }

    #[test]
    fn a_worker_that_is_there_already_keeps_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        own.started((1, 1)).unwrap();
        let again = WorkerFile::create(dir.path().join("file"), &header(), Permissions::from_mode(0o600));
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(1, 1)]));
    }

    #[test]
    fn a_name_that_is_no_line_is_refused_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        for worker in ["a\nb".to_owned(), "x".repeat(HEADER)] {
            let header = Header { worker, boot: String::new() };
            WorkerFile::create(dir.path().join("file"), &header, Permissions::from_mode(0o600)).unwrap_err();
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_note_stands_as_soon_as_it_is_made_and_its_place_is_used_again() {
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
    fn a_file_grows_with_the_guests_that_run_at_once_and_not_with_those_that_ran() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        let size = || dir.path().join("file").metadata().unwrap().len();
        let empty = size();
        let stride = i64::try_from(STRIDE).unwrap();
        for job in 0..2 * stride {
            own.started((job, 1)).unwrap();
            own.ended((job, 1));
        }
        assert_eq!(size(), empty);
        let many: Vec<Attempt> = (0..=stride).map(|job| (job, 2)).collect();
        many.iter().for_each(|attempt| own.started(*attempt).unwrap());
        assert!(size() > empty);
        assert_eq!(found(&dir).notes().unwrap(), notes(&many));
    }

    #[test]
    fn zeros_and_torn_notes_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let own = create(&dir);
        own.started((0, 0)).unwrap();
        own.started((7, 1)).unwrap();
        for torn in 1..NOTE {
            let place = u64::try_from(torn).unwrap() + 1;
            own.file.write_all_at(&note((77, 77))[..torn], offset(place)).unwrap();
        }
        own.file.write_all_at(&note((78, 78))[..NOTE - 1], offset(STRIDE)).unwrap();
        assert_eq!(found(&dir).notes().unwrap(), notes(&[(0, 0), (7, 1)]));
    }

    #[test]
    fn a_file_without_a_whole_header_is_nobodys() {
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
    fn a_note_that_cannot_be_written_takes_the_file_away_and_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut own = create(&dir);
        own.file = File::open(&own.path).unwrap();
        own.started((1, 1)).unwrap_err();
        own.started((2, 1)).unwrap();
        assert!(!dir.path().join("file").exists(), "it would say that neither was started");
    }

    #[test]
    fn of_many_who_find_a_worker_dead_one_gets_the_lock() {
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
            assert_eq!(locked.into_inner(), 1, "the others held a file that was removed, or no lock");
            assert!(!dir.path().join("file").exists());
        }
    }

    #[test]
    fn nobody_removes_a_file_that_has_taken_the_name() {
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
