//! Compiled code on disk, so that a component is compiled once per content and engine settings.
//!
//! The directory belongs to jobq alone (mode 0700), and the way to it to nobody else: what lies in it is native code that
//! will be run.
//! Each entry is the code and, beside it, the code's own SHA-256; an entry that does not match is compiled again.
//!
//! Daemons may share a directory. Nothing is locked: an entry is replaced whole, its code is the same whoever compiled
//! it, one that vanishes between two looks is compiled again, and code that is in use stays mapped when its file goes.
//! An entry's time is that of its last use, by which [`Cache::collect`] knows what nobody wants any more.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{StatVfsMountFlags, statvfs};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::private::private_dir;

/// How long an entry that nobody uses is kept: who goes back to an earlier version, or starts again after a holiday,
/// need not compile.
const KEPT: Duration = Duration::from_secs(14 * 86_400);

/// What the names of our files end in.
const ENDINGS: [&str; 3] = ["cwasm", "sha256", "tmp"];

/// A directory of compiled components.
#[derive(Debug)]
pub struct Cache {
    dir: Option<PathBuf>,
}

impl Cache {
    /// Opens or creates the directory. One that cannot be trusted or written is not used, with a warning: everything is compiled anew then.
    pub fn open(dir: &Path) -> Self {
        match private_dir(dir) {
            Ok(dir) => Self { dir: Some(dir) },
            Err(error) => {
                tracing::warn!("compiled plugins are not cached in `{}`: {error}", dir.display());
                Self { dir: None }
            }
        }
    }

    /// A cache that keeps nothing: everything is compiled anew.
    pub const fn none() -> Self {
        Self { dir: None }
    }

    /// Why compiled code cannot be kept in `dir`, or not be loaded from there; `None` if it can.
    /// Creates the directory like [`open`](Self::open), and writes a file to try it.
    pub fn obstacle(dir: &Path) -> Option<String> {
        let dir = match private_dir(dir) {
            Ok(dir) => dir,
            Err(error) => return Some(error.to_string()),
        };
        if let Err(error) = tempfile::NamedTempFile::with_suffix_in(".tmp", &dir) {
            return Some(format!("it is not writable: {}", error.kind()));
        }
        let is_noexec = statvfs(&dir).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOEXEC));
        is_noexec.then(|| "its file system is mounted noexec, so no code can be loaded from it".to_owned())
    }

    /// Whether the code under `key` is there and whole.
    pub(super) fn has(&self, key: &str) -> bool {
        self.code(key).zip(self.sum(key)).is_some_and(|(code, sum)| is_whole(&code, &sum))
    }

    /// The component kept under `key`, if it is whole and fits `engine`.
    pub(super) fn get(&self, engine: &Engine, key: &str) -> Option<Component> {
        let code = self.code(key)?;
        if !is_whole(&code, &self.sum(key)?) {
            return None;
        }
        touch(&code);
        load(engine, &code).inspect_err(|error| tracing::debug!("cache entry {key} does not load: {error}")).ok()
    }

    /// Keeps compiled code under `key` and loads it from there; in memory where it cannot be kept.
    ///
    /// # Errors
    /// When `engine` does not take its own code.
    pub(super) fn put(&self, engine: &Engine, key: &str, code: &Compiled) -> wasmtime::Result<Component> {
        if let Err(error) = self.keep(key, code) {
            tracing::warn!("compiled plugin is not cached: {error}");
        }
        if let Some(component) = self.get(engine, key) {
            return Ok(component);
        }
        code.load(engine)
    }

    /// Marks the entries under `keys` as used and deletes those that nobody has used for [`KEPT`].
    pub(super) fn collect<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        keys.filter_map(|key| self.code(key)).for_each(|code| touch(&code));
        let Some(Ok(entries)) = self.dir.as_ref().map(fs::read_dir) else { return };
        let mut freed = 0;
        for entry in entries.flatten() {
            let path = entry.path();
            let ours = path.extension().is_some_and(|ending| ENDINGS.iter().any(|ours| ending == *ours));
            // A sum is as old as its compilation, so it goes by the age of its code.
            let dated = if ours { path.with_extension("cwasm") } else { continue };
            let unused = fs::metadata(&dated).or_else(|_| entry.metadata()).is_ok_and(|meta| is_unused(&meta));
            if unused && fs::remove_file(&path).is_ok() {
                freed += 1;
            }
        }
        if freed > 0 {
            let kept = humantime::format_duration(KEPT);
            tracing::info!("deleted {freed} files of compiled plugins that nobody has used for {kept}");
        }
    }

    fn keep(&self, key: &str, code: &Compiled) -> io::Result<()> {
        let (Some(code_path), Some(sum_path)) = (self.code(key), self.sum(key)) else { return Ok(()) };
        write_and_rename(&code_path, &code.0)?;
        write_and_rename(&sum_path, hex::encode(Sha256::digest(&code.0)).as_bytes())
    }

    fn code(&self, key: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{key}.cwasm")))
    }

    fn sum(&self, key: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{key}.sha256")))
    }
}

/// Code that an engine of this process has just compiled.
#[derive(Debug)]
pub(super) struct Compiled(Vec<u8>);

impl Compiled {
    /// Compiles a component.
    ///
    /// # Errors
    /// When it is not valid.
    pub(super) fn new(engine: &Engine, component: &[u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(component).map(Self)
    }

    #[expect(unsafe_code, reason = "wasmtime cannot tell its own code from other bytes")]
    fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes come from `precompile_component` in this process (the only constructor) and have not left it.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}

#[expect(unsafe_code, reason = "wasmtime cannot tell its own code from other bytes")]
fn load(engine: &Engine, code: &Path) -> wasmtime::Result<Component> {
    // SAFETY: `private_dir` made sure that only this user can write the directory and nobody else can put another in its
    // place, `is_whole` that the file is what `keep` wrote there, and entries are replaced by rename, never in place, so the mapping does not change under us.
    // A different engine or version is refused by wasmtime itself.
    unsafe { Component::deserialize_file(engine, code) }
}

/// Sets the time of the last use; a directory that cannot be written has no need of it.
fn touch(code: &Path) {
    _ = File::open(code).and_then(|file| file.set_modified(SystemTime::now()));
}

fn is_unused(meta: &Metadata) -> bool {
    meta.modified().ok().and_then(|used| used.elapsed().ok()).is_some_and(|age| age >= KEPT)
}

fn is_whole(code: &Path, sum: &Path) -> bool {
    let (Ok(mut file), Ok(sum)) = (File::open(code), fs::read_to_string(sum)) else { return false };
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut HashWriter(&mut hasher)).is_ok() && hex::encode(hasher.finalize()) == sum
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces `path` as a whole, so that a reader sees the old file or the new one, never a part.
fn write_and_rename(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let temporary = path.with_extension(format!("{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path());
        (dir, cache)
    }

    #[test]
    fn what_nobody_has_used_for_long_is_deleted_and_nothing_else() {
        let (dir, cache) = opened();
        let long_ago = SystemTime::now() - KEPT;
        let write = |name: &str, time: SystemTime| {
            fs::write(dir.path().join(name), name).unwrap();
            File::open(dir.path().join(name)).unwrap().set_modified(time).unwrap();
        };
        for name in
            ["gone.cwasm", "gone.sha256", "serving.cwasm", "serving.sha256", "1-2.tmp", "orphan.sha256", "notes.txt"]
        {
            write(name, long_ago);
        }
        write("others.cwasm", SystemTime::now());
        write("others.sha256", long_ago);
        write("3-4.tmp", SystemTime::now());
        cache.collect(["serving", "not there"].into_iter());
        let mut left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["3-4.tmp", "notes.txt", "others.cwasm", "others.sha256", "serving.cwasm", "serving.sha256"]);
    }

    #[test]
    fn an_entry_that_is_taken_from_the_cache_counts_as_used() {
        let (dir, cache) = opened();
        let engine = Engine::default();
        let code = Compiled::new(&engine, b"\0asm\x0d\0\x01\0").unwrap();
        cache.put(&engine, "key", &code).unwrap();
        let file = dir.path().join("key.cwasm");
        File::open(&file).unwrap().set_modified(SystemTime::now() - KEPT).unwrap();
        assert!(cache.get(&engine, "key").is_some());
        cache.collect(std::iter::empty());
        assert!(file.exists());
    }
}
