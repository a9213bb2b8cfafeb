//! From a file to a component that can run: read, hash, convert to a component, compile or load from the cache, type-check.
//!
//! In the daemon this happens on threads of lower priority, the smallest file first, so that a big plugin delays no other.

use std::any::Any;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::cache::{Cache, Compiled};
use super::scan::{FileName, Fingerprint};
use super::version::Version;
use crate::sandbox::{LoadError, Metering, Sandbox, componentize};

/// The largest plugin file.
const MAX_FILE: u64 = 256 << 20;

/// A file up to this size is small: on a free core it compiles in a second or two.
const SMALL: u64 = 1 << 20;

/// The threads that compile. Big files take up to a minute. They have threads of their own, so that small files don't wait
/// for them.
const THREADS: [CompileLane; 4] = [CompileLane::SMALL, CompileLane::SMALL, CompileLane::BIG, CompileLane::BIG];

/// Which files a thread compiles, and its priority.
#[derive(Clone, PartialEq)]
struct CompileLane {
    sizes: RangeInclusive<u64>,
    /// With the lowest priority, 19, a thread hardly runs on a busy machine: seconds of work took half a minute.
    nice: i32,
}

impl CompileLane {
    const SMALL: Self = Self { sizes: 0..=SMALL, nice: 5 };
    const BIG: Self = Self { sizes: SMALL + 1..=u64::MAX, nice: 10 };
}

/// Why a file can't be loaded.
#[derive(Debug, Error)]
pub enum LoadFileError {
    /// It can't be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too large.
    #[error(
        "`{}` has {}, more than the {} a plugin may have; strip its debug information, or remove data from it",
        path.display(), bytesize::ByteSize::b(*.len), bytesize::ByteSize::b(MAX_FILE)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        len: u64,
    },
    /// It was changed while it was read. It is loaded again when it no longer changes.
    #[error("`{}` changed while it was read", .0.display())]
    Unsettled(PathBuf),
    /// It isn't a handler that this host can run.
    #[error(transparent)]
    Unfit(#[from] LoadError),
    /// The compiler panicked, which is a bug of jobq or wasmtime.
    #[error("jobq panicked while loading it; please report this bug: {0}")]
    Panicked(String),
}

/// Loads one file on the calling thread.
///
/// # Errors
/// When it can't be read or loaded.
pub fn load_file(path: &Path, metering: Metering, sandbox: &Sandbox, cache: &Cache) -> Result<Version, LoadFileError> {
    let bytes = read(path)?;
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    let wasm = componentize(&bytes)?;
    let engine = sandbox.engine(metering).map_err(LoadError::from)?;
    let key = key(digest, metering, sandbox)?;
    let component = match cache.get(engine, &key) {
        Some(component) => component,
        None => Compiled::new(engine, &wasm)
            .and_then(|code| cache.put(engine, &key, &code))
            .map_err(LoadError::from_compile)?,
    };
    Ok(Version::new(digest, key, sandbox.link(&component, &wasm, metering)?))
}

/// Whether compiled code of the file with this SHA-256 is in the cache.
///
/// # Errors
/// When WebAssembly can't run on this machine.
pub fn is_compiled(digest: [u8; 32], metering: Metering, sandbox: &Sandbox, cache: &Cache) -> Result<bool, LoadError> {
    Ok(cache.has(&key(digest, metering, sandbox)?))
}

/// The cache key of compiled code.
fn key(digest: [u8; 32], metering: Metering, sandbox: &Sandbox) -> Result<String, LoadError> {
    Ok(format!("{}-{}", hex::encode(digest), sandbox.settings_hash(metering)?))
}

/// The bytes of a plugin file.
///
/// # Errors
/// When it can't be read, isn't a regular file, is too large, or changes while it is read.
pub fn read(path: &Path) -> Result<Vec<u8>, LoadFileError> {
    let unreadable = |source| LoadFileError::Unreadable { path: path.to_path_buf(), source };
    let before = Fingerprint::of(path).map_err(unreadable)?;
    if before.len > MAX_FILE {
        return Err(LoadFileError::TooLarge { path: path.to_path_buf(), len: before.len });
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    match Fingerprint::of(path) {
        Ok(after) if after == before && bytes.len() as u64 == before.len => Ok(bytes),
        _ => Err(LoadFileError::Unsettled(path.to_path_buf())),
    }
}

/// A request to load a file for one engine.
#[derive(Debug)]
pub(super) struct LoadRequest {
    pub(super) name: FileName,
    pub(super) metering: Metering,
    pub(super) fingerprint: Fingerprint,
}

/// The result of a request.
pub(super) struct Loaded {
    pub(super) request: LoadRequest,
    pub(super) result: Result<Version, LoadFileError>,
}

/// The function that serves a request.
type Load = dyn Fn(&LoadRequest) -> Result<Version, LoadFileError> + Send + Sync;

/// Background threads that load files.
pub(super) struct Loader {
    shared: Arc<Shared>,
    cache: Arc<Cache>,
}

struct Shared {
    load: Box<Load>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    requests: Vec<LoadRequest>,
    closed: bool,
}

impl Loader {
    /// Starts the threads; `done` gets the result of every request. They end when the loader is dropped.
    pub(super) fn start(
        dir: PathBuf,
        sandbox: Arc<Sandbox>,
        cache: Cache,
        done: impl Fn(Loaded) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let cache = Arc::new(cache);
        let load = {
            let cache = Arc::clone(&cache);
            move |request: &LoadRequest| load_file(&dir.join(&request.name), request.metering, &sandbox, &cache)
        };
        Ok(Self { shared: start_threads(Box::new(load), done)?, cache })
    }

    /// Requests a file to be loaded. Replaces an earlier request for it that no thread has started.
    pub(super) fn request(&self, request: LoadRequest) {
        self.shared.add(request);
    }

    /// Deletes unused entries from the cache; `keys` are in use.
    pub(super) fn collect(&self, keys: &BTreeSet<&str>) {
        self.cache.collect(keys);
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.close();
    }
}

fn start_threads(load: Box<Load>, done: impl Fn(Loaded) + Clone + Send + 'static) -> io::Result<Arc<Shared>> {
    let shared = Arc::new(Shared { load, queue: Mutex::default(), changed: Condvar::new() });
    for lane in THREADS {
        let (shared, done) = (Arc::clone(&shared), done.clone());
        std::thread::Builder::new().name("compile".into()).spawn(move || work(&shared, &lane, done))?;
    }
    Ok(shared)
}

impl Shared {
    fn add(&self, request: LoadRequest) {
        let requests = &mut self.queue().requests;
        requests.retain(|waiting| (&waiting.name, waiting.metering) != (&request.name, request.metering));
        requests.push(request);
        // A single thread that is woken might be for other sizes.
        self.changed.notify_all();
    }

    fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the smallest file with one of these sizes; `None` once the loader is dropped.
    fn next(&self, sizes: &RangeInclusive<u64>) -> Option<LoadRequest> {
        let find = |queue: &Queue| smallest(queue.requests.iter().map(|request| request.fingerprint.len), sizes);
        let idle = |queue: &mut Queue| !queue.closed && find(queue).is_none();
        let mut queue = self.queue();
        self.changed.wait_while(&mut queue, idle);
        let at = find(&queue).filter(|_| !queue.closed)?;
        Some(queue.requests.swap_remove(at))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

/// The index of the smallest file among those with one of `sizes`.
fn smallest(files: impl Iterator<Item = u64>, sizes: &RangeInclusive<u64>) -> Option<usize> {
    files.enumerate().filter(|(_, size)| sizes.contains(size)).min_by_key(|(_, size)| *size).map(|(at, _)| at)
}

fn work(shared: &Shared, lane: &CompileLane, done: impl Fn(Loaded)) {
    let thread = rustix::process::Pid::from_raw(rustix::thread::gettid().as_raw_pid());
    _ = rustix::process::setpriority_process(thread, lane.nice);
    while let Some(request) = shared.next(&lane.sizes) {
        // A panic of the compiler must not end the thread, which is needed for the next file.
        let result = catch_unwind(AssertUnwindSafe(|| (shared.load)(&request)));
        let result = result.unwrap_or_else(|panic| Err(LoadFileError::Panicked(message(&*panic).to_owned())));
        done(Loaded { request, result });
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Generous: a slow machine must pass.
    const PATIENCE: Duration = Duration::from_secs(120);

    #[test]
    fn small_files_come_first_and_do_not_wait_for_big_ones() {
        let files = [20 << 20, 3 << 20, 1 << 20];
        assert_eq!(smallest(files.into_iter(), &CompileLane::BIG.sizes), Some(1));
        assert_eq!(smallest(files.into_iter(), &CompileLane::SMALL.sizes), Some(2));
        assert_eq!(smallest(files.into_iter().take(2), &CompileLane::SMALL.sizes), None);
        for size in [0, SMALL, SMALL + 1, u64::MAX] {
            assert_eq!(THREADS.iter().filter(|lane| lane.sizes.contains(&size)).count(), 2, "{size}");
        }
    }

    fn request(dir: &Path, name: &str) -> LoadRequest {
        std::fs::write(dir.join(name), "").unwrap();
        LoadRequest {
            name: name.to_owned(),
            metering: Metering::Time,
            fingerprint: Fingerprint::of(&dir.join(name)).unwrap(),
        }
    }

    #[test]
    fn a_panic_is_reported_and_ends_no_thread() {
        let dir = tempfile::tempdir().unwrap();
        let load = |request: &LoadRequest| match request.name.as_str() {
            "sound.wasm" => Err(LoadFileError::Unsettled(PathBuf::new())),
            name => panic!("{name} panics"),
        };
        let (done, outcome) = mpsc::channel();
        let shared = start_threads(Box::new(load), move |loaded| _ = done.send(loaded)).unwrap();
        for number in 0..2 * THREADS.len() {
            let name = format!("{number}.wasm");
            shared.add(request(dir.path(), &name));
            let Loaded { request, result } = outcome.recv_timeout(PATIENCE).expect("a working thread");
            let Err(LoadFileError::Panicked(message)) = result else { panic!("it did not panic") };
            assert_eq!((&request.name, message), (&name, format!("{name} panics")));
        }
        shared.add(request(dir.path(), "sound.wasm"));
        let result = outcome.recv_timeout(PATIENCE).expect("a working thread").result;
        assert!(matches!(result, Err(LoadFileError::Unsettled(_))));
        shared.close();
        assert!(outcome.recv_timeout(PATIENCE).is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_not_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("growing.wasm");
        File::create(&path).unwrap().set_len(32 << 20).unwrap();
        let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
        let (written, first_write) = mpsc::channel();
        let (done, is_done) = mpsc::channel::<()>();
        let writing = std::thread::spawn(move || {
            while is_done.try_recv() == Err(mpsc::TryRecvError::Empty) {
                writer.write_all(b"more").unwrap();
                _ = written.send(());
            }
        });
        first_write.recv().unwrap();
        let read = read(&path);
        drop(done);
        writing.join().unwrap();
        assert!(matches!(read, Err(LoadFileError::Unsettled(_))), "{read:?}");
    }

    #[test]
    fn a_file_over_the_size_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.wasm");
        File::create(&path).unwrap().set_len(300 << 20).unwrap();
        assert!(matches!(read(&path), Err(LoadFileError::TooLarge { len: 314_572_800, .. })));
    }
}
