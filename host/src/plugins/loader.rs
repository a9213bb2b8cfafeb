//! From a file to a component that can run: read, hash, make a component of it, compile or take from the cache, type-check.
//!
//! In the daemon this happens on threads that stand back, smallest file first, so that a big plugin delays nobody.

use std::any::Any;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::cache::{Cache, Compiled};
use super::registry::Version;
use super::scan::{FileName, Fingerprint};
use crate::sandbox::{LoadError, Metering, Sandbox, componentize};

/// The largest file that is taken for a plugin.
const MAX_FILE: u64 = 256 << 20;

/// A file up to this size is small: it is compiled in a second or two, where there is a core for it.
const SMALL: u64 = 1 << 20;

/// The threads that compile. Big files take up to a minute, and only threads of their own, so that a small one finds
/// another free.
const THREADS: [Lane; 4] = [Lane::SMALL, Lane::SMALL, Lane::BIG, Lane::BIG];

/// Which files a thread takes, and how far it stands back behind what runs.
#[derive(Clone, PartialEq)]
struct Lane {
    sizes: RangeInclusive<u64>,
    /// At the lowest priority, 19, a busy machine gives a thread next to nothing: seconds of work took half a minute.
    nice: i32,
}

impl Lane {
    const SMALL: Self = Self { sizes: 0..=SMALL, nice: 5 };
    const BIG: Self = Self { sizes: SMALL + 1..=u64::MAX, nice: 10 };
}

/// Why a file cannot serve.
#[derive(Debug, Error)]
pub enum LoadFileError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is larger than any plugin should be.
    #[error(
        "`{}` has {}, more than the {} a plugin may have; strip its debug information, or leave data out of it",
        path.display(), bytesize::ByteSize::b(*.len), bytesize::ByteSize::b(MAX_FILE)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        len: u64,
    },
    /// It was written while it was read; it is tried again when it is quiet.
    #[error("`{}` changed while it was read", .0.display())]
    Unsettled(PathBuf),
    /// It is not a handler that this host can run.
    #[error(transparent)]
    Unfit(#[from] LoadError),
    /// Something in the host does not stand it, which is a fault of the host.
    #[error("jobq itself failed on it, which is a fault worth reporting: {0}")]
    Panicked(String),
}

/// Loads one file on the calling thread.
///
/// # Errors
/// When it cannot be read or cannot serve.
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

/// Whether the file with this SHA-256 need not be compiled to be loaded.
///
/// # Errors
/// When WebAssembly cannot run here.
pub fn is_compiled(digest: [u8; 32], metering: Metering, sandbox: &Sandbox, cache: &Cache) -> Result<bool, LoadError> {
    Ok(cache.has(&key(digest, metering, sandbox)?))
}

/// Under which name compiled code is kept.
fn key(digest: [u8; 32], metering: Metering, sandbox: &Sandbox) -> Result<String, LoadError> {
    Ok(format!("{}-{}", hex::encode(digest), sandbox.settings_hash(metering)?))
}

/// The bytes of a plugin's file.
///
/// # Errors
/// When it cannot be read, is no regular file, is too large, or changes while it is read.
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

/// A file to be loaded for one kind of engine.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) name: FileName,
    pub(super) metering: Metering,
    pub(super) fingerprint: Fingerprint,
}

/// What became of an order.
pub(super) struct Loaded {
    pub(super) order: Order,
    pub(super) result: Result<Version, LoadFileError>,
}

/// What a thread does with an order.
type Load = dyn Fn(&Order) -> Result<Version, LoadFileError> + Send + Sync;

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
    orders: Vec<Order>,
    closed: bool,
}

impl Loader {
    /// Starts the threads; `done` hears of every order. They end when the loader is dropped.
    pub(super) fn start(
        dir: PathBuf,
        sandbox: Arc<Sandbox>,
        cache: Cache,
        done: impl Fn(Loaded) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let cache = Arc::new(cache);
        let load = {
            let cache = Arc::clone(&cache);
            move |order: &Order| load_file(&dir.join(&order.name), order.metering, &sandbox, &cache)
        };
        Ok(Self { shared: start_threads(Box::new(load), done)?, cache })
    }

    /// Asks for a file to be loaded; an earlier order for it that nobody has begun is replaced.
    pub(super) fn order(&self, order: Order) {
        self.shared.add(order);
    }

    /// Rids the cache of what nobody uses; `keys` are in use.
    pub(super) fn collect<'a>(&self, keys: impl Iterator<Item = &'a str>) {
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
    fn add(&self, order: Order) {
        let orders = &mut self.queue().orders;
        orders.retain(|waiting| (&waiting.name, waiting.metering) != (&order.name, order.metering));
        orders.push(order);
        // Whichever thread would be woken alone might not take it.
        self.changed.notify_all();
    }

    fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// The smallest file that waits and is of one of these sizes, as soon as there is one; `None` when none will come.
    fn next(&self, sizes: &RangeInclusive<u64>) -> Option<Order> {
        let find = |queue: &Queue| smallest(queue.orders.iter().map(|order| order.fingerprint.len), sizes);
        let idle = |queue: &mut Queue| !queue.closed && find(queue).is_none();
        let mut queue = self.changed.wait_while(self.queue(), idle).unwrap_or_else(PoisonError::into_inner);
        let at = find(&queue).filter(|_| !queue.closed)?;
        Some(queue.orders.swap_remove(at))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of these files is the smallest, among those of one of `sizes`.
fn smallest(files: impl Iterator<Item = u64>, sizes: &RangeInclusive<u64>) -> Option<usize> {
    files.enumerate().filter(|(_, size)| sizes.contains(size)).min_by_key(|(_, size)| *size).map(|(at, _)| at)
}

fn work(shared: &Shared, lane: &Lane, done: impl Fn(Loaded)) {
    let thread = rustix::process::Pid::from_raw(rustix::thread::gettid().as_raw_pid());
    _ = rustix::process::setpriority_process(thread, lane.nice);
    while let Some(order) = shared.next(&lane.sizes) {
        // A file that makes the compiler panic must not take the thread with it: the next one would find none.
        let result = catch_unwind(AssertUnwindSafe(|| (shared.load)(&order)));
        let result = result.unwrap_or_else(|panic| Err(LoadFileError::Panicked(message(&*panic).to_owned())));
        done(Loaded { order, result });
    }
}

/// What a panic says.
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
    fn small_files_come_first_and_find_a_thread_when_big_ones_have_theirs() {
        let files = [20 << 20, 3 << 20, 1 << 20];
        assert_eq!(smallest(files.into_iter(), &Lane::BIG.sizes), Some(1));
        assert_eq!(smallest(files.into_iter(), &Lane::SMALL.sizes), Some(2));
        assert_eq!(smallest(files.into_iter().take(2), &Lane::SMALL.sizes), None);
        for size in [0, SMALL, SMALL + 1, u64::MAX] {
            assert_eq!(THREADS.iter().filter(|lane| lane.sizes.contains(&size)).count(), 2, "{size}");
        }
    }

    fn order(dir: &Path, name: &str) -> Order {
        std::fs::write(dir.join(name), "").unwrap();
        Order {
            name: name.to_owned(),
            metering: Metering::Time,
            fingerprint: Fingerprint::of(&dir.join(name)).unwrap(),
        }
    }

    #[test]
    fn a_panic_is_told_and_takes_no_thread_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let load = |order: &Order| match order.name.as_str() {
            "sound.wasm" => Err(LoadFileError::Unsettled(PathBuf::new())),
            name => panic!("{name} is too much"),
        };
        let (done, outcome) = mpsc::channel();
        let shared = start_threads(Box::new(load), move |loaded| _ = done.send(loaded)).unwrap();
        for number in 0..2 * THREADS.len() {
            let name = format!("{number}.wasm");
            shared.add(order(dir.path(), &name));
            let Loaded { order, result } = outcome.recv_timeout(PATIENCE).expect("a thread that still works");
            let Err(LoadFileError::Panicked(message)) = result else { panic!("it did not panic") };
            assert_eq!((&order.name, message), (&name, format!("{name} is too much")));
        }
        shared.add(order(dir.path(), "sound.wasm"));
        let result = outcome.recv_timeout(PATIENCE).expect("a thread that still works").result;
        assert!(matches!(result, Err(LoadFileError::Unsettled(_))));
        shared.close();
        assert!(outcome.recv_timeout(PATIENCE).is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_is_not_taken() {
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
    fn a_file_that_is_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.wasm");
        File::create(&path).unwrap().set_len(300 << 20).unwrap();
        assert!(matches!(read(&path), Err(LoadFileError::TooLarge { len: 314_572_800, .. })));
    }
}
