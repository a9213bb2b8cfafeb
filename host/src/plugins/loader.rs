//! From a file to a component that can run: read, hash, make a component of it, compile or take from the cache, type-check.
//!
//! In the daemon this happens on threads of low priority, smallest file first, so that a big plugin delays nobody.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::cache::{Cache, Compiled};
use super::registry::Version;
use super::scan::{FileName, Fingerprint};
use crate::sandbox::{LoadError, Metering, Sandbox, componentize};

/// The largest file that is taken for a plugin.
const MAX_FILE: u64 = 256 << 20;

/// The lowest scheduling priority: compiling must not slow what runs.
const NICE: i32 = 19;

/// The largest file each thread takes. Those that take everything may all be busy with big ones for a minute; a small
/// one finds the last thread free.
const THREADS: [u64; 3] = [u64::MAX, u64::MAX, 2 << 20];

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

/// Background threads that load files.
pub(super) struct Loader {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    sandbox: Arc<Sandbox>,
    cache: Cache,
    orders: Mutex<Vec<Order>>,
    ordered: Condvar,
}

impl Loader {
    /// Starts the threads; `done` hears of every order. They end when the loader is dropped.
    pub(super) fn start(
        dir: PathBuf,
        sandbox: Arc<Sandbox>,
        cache: Cache,
        done: impl Fn(Loaded) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { dir, sandbox, cache, orders: Mutex::default(), ordered: Condvar::new() });
        for largest in THREADS {
            let (shared, done) = (Arc::downgrade(&shared), done.clone());
            std::thread::Builder::new().name("compile".into()).spawn(move || work(&shared, largest, done))?;
        }
        Ok(Self { shared })
    }

    /// Asks for a file to be loaded; an earlier order for it that nobody has begun is replaced.
    pub(super) fn order(&self, order: Order) {
        let mut orders = self.shared.orders();
        orders.retain(|waiting| (&waiting.name, waiting.metering) != (&order.name, order.metering));
        orders.push(order);
        // Whichever thread would be woken alone might not take it.
        self.shared.ordered.notify_all();
    }

    /// Rids the cache of what nobody uses; `keys` are in use.
    pub(super) fn collect<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        self.shared.cache.collect(keys);
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.ordered.notify_all();
    }
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Vec<Order>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The smallest file that waits and is no larger than `largest`, or `None` after a while without any.
    fn next(&self, largest: u64) -> Option<Order> {
        let find = |orders: &[Order]| smallest(orders.iter().map(|order| order.fingerprint.len), largest);
        let (mut orders, _) = self
            .ordered
            .wait_timeout_while(self.orders(), std::time::Duration::from_secs(1), |orders| find(orders).is_none())
            .unwrap_or_else(PoisonError::into_inner);
        let at = find(&orders)?;
        Some(orders.swap_remove(at))
    }
}

/// Which of these sizes is the smallest, and no larger than `largest`.
fn smallest(sizes: impl Iterator<Item = u64>, largest: u64) -> Option<usize> {
    sizes.enumerate().filter(|(_, size)| *size <= largest).min_by_key(|(_, size)| *size).map(|(at, _)| at)
}

fn work(shared: &Weak<Shared>, largest: u64, done: impl Fn(Loaded)) {
    _ = rustix::process::setpriority_process(
        rustix::process::Pid::from_raw(rustix::thread::gettid().as_raw_pid()),
        NICE,
    );
    while let Some(shared) = shared.upgrade() {
        if let Some(order) = shared.next(largest) {
            let result = load_file(&shared.dir.join(&order.name), order.metering, &shared.sandbox, &shared.cache);
            done(Loaded { order, result });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn small_files_come_first_and_one_thread_takes_no_others() {
        let sizes = [20 << 20, 3 << 20, 1 << 20];
        assert_eq!(smallest(sizes.into_iter(), u64::MAX), Some(2));
        assert_eq!(smallest(sizes.into_iter().take(2), u64::MAX), Some(1));
        assert_eq!(smallest(sizes.into_iter().take(2), 2 << 20), None);
        assert!(THREADS.iter().any(|largest| *largest < 20 << 20) && THREADS.contains(&u64::MAX));
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
