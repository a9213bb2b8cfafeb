//! Compiled code on disk, so that a component is compiled only once per content and engine settings.
//!
//! The directory belongs to jobq alone (mode 0700), and no other user can replace it: its files are native code that will
//! be run. Each entry is the code and, in a second file, its SHA-256. An entry that doesn't match is compiled again.
//!
//! Daemons may share a directory without locks. Entries are replaced by rename, the code is the same whoever compiled it,
//! an entry that is deleted by another daemon is compiled again, and code in use stays mapped after its file is deleted.
//! The modification time of an entry is that of its last use. Entries unused for [`KEPT`] are deleted, and the least
//! recently used ones beyond [`MAX_BYTES`].

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{StatVfsMountFlags, statvfs};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::private::{EXTENSIONS, private_dir};

/// How long an unused entry is kept, so that going back to an earlier version needs no compilation.
const KEPT: Duration = Duration::from_secs(14 * 86_400);

/// The size of all entries together. One version of a Python handler has 37 MiB.
const MAX_BYTES: u64 = 1 << 30;

/// Bytes written to see whether the directory has room.
static PROBE: [u8; 64 << 10] = [0; 64 << 10];

/// A directory of compiled components.
#[derive(Debug)]
pub struct Cache {
    dir: Option<PathBuf>,
    /// Why it doesn't work, or not fully.
    problem: Option<String>,
    /// Whether files are read into memory, because the file system doesn't let them be executed.
    is_noexec: bool,
    /// Whether a failure to write was logged.
    warned: AtomicBool,
}

impl Cache {
    /// Opens the directory, or creates it. A directory that can't be trusted or written to isn't used; then every component
    /// is compiled at every start. This logs one warning; see [`problem`](Self::problem).
    pub fn open(dir: &Path) -> Self {
        let cache = Self::open_quietly(dir);
        if let Some(problem) = &cache.problem {
            tracing::warn!("{problem}");
        }
        cache
    }

    /// The same without a warning.
    pub fn open_quietly(dir: &Path) -> Self {
        let name = dir.display();
        let unusable = |reason: &dyn std::fmt::Display| Self {
            problem: Some(format!(
                "the cache directory `{name}` is not used, so plugins are compiled every time: {reason}"
            )),
            ..Self::none()
        };
        let dir = match private_dir(dir) {
            Ok(dir) => dir,
            Err(error) => return unusable(&error),
        };
        if let Err(error) = probe(&dir) {
            return unusable(&format!("it cannot be written to: {error}"));
        }
        let is_noexec = statvfs(&dir).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::NOEXEC));
        let problem = is_noexec.then(|| {
            format!(
                "the cache directory `{name}` is on a file system mounted `noexec`: compiled plugins are copied into \
                 memory instead of mapped, which takes more memory; set `plugins.cache_dir` to another file system"
            )
        });
        Self { dir: Some(dir), problem, is_noexec, warned: AtomicBool::new(false) }
    }

    /// A cache that stores nothing: everything is compiled.
    pub const fn none() -> Self {
        Self { dir: None, problem: None, is_noexec: false, warned: AtomicBool::new(false) }
    }

    /// Why the directory can't be used, or only in part.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether the code for `key` exists and is intact.
    pub(super) fn has(&self, key: &str) -> bool {
        self.code(key).zip(self.sum(key)).is_some_and(|(code, sum)| is_intact(&code, &sum))
    }

    /// The component for `key`, if its code is intact and fits `engine`.
    pub(super) fn get(&self, engine: &Engine, key: &str) -> Option<Component> {
        let (code, sum) = (self.code(key)?, self.sum(key)?);
        let loaded = if self.is_noexec {
            Compiled::read_verified(&code, &sum)?.load(engine)
        } else if is_intact(&code, &sum) {
            load_mapped(engine, &code)
        } else {
            return None;
        };
        touch(&code);
        loaded.inspect_err(|error| tracing::debug!("cache entry {key} does not load: {error:#}")).ok()
    }

    /// Stores compiled code under `key` and loads it from there, or from memory if it can't be stored.
    ///
    /// # Errors
    /// When `engine` can't load its own code.
    pub(super) fn put(&self, engine: &Engine, key: &str, code: &Compiled) -> wasmtime::Result<Component> {
        match self.store(key, code) {
            Ok(()) => self.delete_beyond(MAX_BYTES, &BTreeSet::from([key])),
            Err(error) if !self.warned.swap(true, Ordering::Relaxed) => {
                let dir = self.dir.as_deref().unwrap_or(Path::new("")).display();
                tracing::warn!(
                    "cannot write to the cache directory `{dir}`, so plugins are compiled again at the next start: {error}"
                );
            }
            Err(_) => {}
        }
        if let Some(component) = self.get(engine, key) {
            return Ok(component);
        }
        code.load(engine)
    }

    /// Marks the entries for `keys` as used, and deletes entries that were unused for [`KEPT`] or are beyond [`MAX_BYTES`].
    pub(super) fn collect(&self, keys: &BTreeSet<&str>) {
        keys.iter().filter_map(|key| self.code(key)).for_each(|code| touch(&code));
        let unused = |path: &PathBuf| {
            // The sum is never touched, so it goes by the time of its code.
            let code = path.with_extension("cwasm");
            fs::metadata(&code).or_else(|_| fs::metadata(path)).is_ok_and(|meta| is_unused(&meta))
        };
        let deleted = self.files().filter(unused).filter(|path| fs::remove_file(path).is_ok()).count();
        if deleted > 0 {
            let kept = humantime::format_duration(KEPT);
            tracing::info!("deleted {deleted} cache files of compiled plugins that were unused for {kept}");
        }
        self.delete_beyond(MAX_BYTES, keys);
    }

    /// Deletes the least recently used entries until all together have at most `max` bytes. Keeps those for `keys`.
    fn delete_beyond(&self, max: u64, keys: &BTreeSet<&str>) {
        let is_code = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "cwasm");
        let entry = |path: PathBuf| {
            let meta = fs::metadata(&path).ok()?;
            Some((meta.modified().ok()?, meta.len(), path))
        };
        let mut entries: Vec<_> = self.files().filter(is_code).filter_map(entry).collect();
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, len, _)| len).sum();
        let is_in_use =
            |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|key| keys.contains(key));
        let (mut deleted, mut freed) = (0, 0);
        for (_, len, path) in entries.into_iter().filter(|(.., path)| !is_in_use(path)) {
            if total <= max {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                _ = fs::remove_file(path.with_extension("sha256"));
                total -= len;
                deleted += 1;
                freed += len;
            }
        }
        if deleted > 0 {
            let [freed, max] = [freed, max].map(bytesize::ByteSize::b);
            tracing::info!("deleted {deleted} compiled plugins ({freed}) from the cache, which may have {max}");
        }
    }

    /// All files of ours.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = self.dir.as_ref().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
        let is_ours =
            |path: &PathBuf| path.extension().is_some_and(|found| EXTENSIONS.iter().any(|ours| found == *ours));
        entries.map(|entry| entry.path()).filter(is_ours)
    }

    fn store(&self, key: &str, code: &Compiled) -> io::Result<()> {
        let (Some(dir), Some(code_path), Some(sum_path)) = (&self.dir, self.code(key), self.sum(key)) else {
            return Ok(());
        };
        replace(dir, &code_path, &code.0)?;
        replace(dir, &sum_path, hex::encode(Sha256::digest(&code.0)).as_bytes())
    }

    fn code(&self, key: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{key}.cwasm")))
    }

    fn sum(&self, key: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{key}.sha256")))
    }
}

/// Code compiled by an engine of this process, or read from a file with a matching sum.
#[derive(Debug)]
pub(super) struct Compiled(Vec<u8>);

impl Compiled {
    /// Compiles a component.
    ///
    /// # Errors
    /// When it is invalid.
    pub(super) fn new(engine: &Engine, component: &[u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(component).map(Self)
    }

    /// Reads stored code; `None` if it doesn't match its sum.
    fn read_verified(code: &Path, sum: &Path) -> Option<Self> {
        let (code, sum) = (fs::read(code).ok()?, fs::read_to_string(sum).ok()?);
        (hex::encode(Sha256::digest(&code)) == sum).then_some(Self(code))
    }

    #[expect(unsafe_code, reason = "wasmtime cannot verify that bytes are its own code")]
    fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes come from `precompile_component`, in this process or through `store` and a file that only this
        // user can write, and have matched their SHA-256 since. They are not changed afterwards.
        // wasmtime itself refuses code of another engine or version.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}

#[expect(unsafe_code, reason = "wasmtime cannot verify that bytes are its own code")]
fn load_mapped(engine: &Engine, code: &Path) -> wasmtime::Result<Component> {
    // SAFETY: `private_dir` made sure that only this user can write to the directory and that no other user can replace it.
    // `is_intact` made sure that the file is what `store` wrote. Files are replaced by rename and never changed in place, so
    // the mapping doesn't change. wasmtime itself refuses code of another engine or version.
    unsafe { Component::deserialize_file(engine, code) }
}

/// Sets the time of the last use. Fails silently in a directory that can't be written to, where it isn't needed.
fn touch(code: &Path) {
    _ = File::open(code).and_then(|file| file.set_modified(SystemTime::now()));
}

fn is_unused(meta: &Metadata) -> bool {
    meta.modified().ok().and_then(|used| used.elapsed().ok()).is_some_and(|age| age >= KEPT)
}

fn is_intact(code: &Path, sum: &Path) -> bool {
    let (Ok(mut file), Ok(sum)) = (File::open(code), fs::read_to_string(sum)) else { return false };
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher).is_ok() && hex::encode(hasher.finalize()) == sum
}

/// Whether a file can be written in `dir`.
fn probe(dir: &Path) -> io::Result<()> {
    temporary_file(dir)?.write_all(&PROBE)
}

fn temporary_file(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().suffix(".tmp").tempfile_in(dir)
}

/// Replaces `path` by rename, so that a reader sees the old file or the new one, never a part.
fn replace(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = temporary_file(dir)?;
    temporary.write_all(bytes)?;
    temporary.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path());
        (dir, cache)
    }

    fn write(dir: &tempfile::TempDir, name: &str, time: SystemTime) {
        fs::write(dir.path().join(name), name).unwrap();
        File::open(dir.path().join(name)).unwrap().set_modified(time).unwrap();
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn entries_unused_for_long_are_deleted_and_nothing_else() {
        let (dir, cache) = opened();
        let long_ago = SystemTime::now() - KEPT;
        for name in
            ["gone.cwasm", "gone.sha256", "serving.cwasm", "serving.sha256", "1-2.tmp", "orphan.sha256", "notes.txt"]
        {
            write(&dir, name, long_ago);
        }
        write(&dir, "others.cwasm", SystemTime::now());
        write(&dir, "others.sha256", long_ago);
        write(&dir, "3-4.tmp", SystemTime::now());
        cache.collect(&BTreeSet::from(["serving", "not there"]));
        let left = ["3-4.tmp", "notes.txt", "others.cwasm", "others.sha256", "serving.cwasm", "serving.sha256"];
        assert_eq!(names(&dir), left);
    }

    #[test]
    fn the_least_recently_used_entries_beyond_the_size_limit_are_deleted() {
        let (dir, cache) = opened();
        for (age, key) in [(4, "used"), (3, "oldest"), (2, "older"), (1, "newest")] {
            for extension in ["cwasm", "sha256"] {
                write(&dir, &format!("{key}.{extension}"), SystemTime::now() - Duration::from_secs(60 * age));
            }
        }
        write(&dir, "notes.txt", SystemTime::now() - KEPT);
        // Each file contains its name. Room for the entry in use and the newest one.
        let max = ("used.cwasm".len() + "newest.cwasm".len()) as u64;
        cache.delete_beyond(max, &BTreeSet::from(["used"]));
        let left = ["newest.cwasm", "newest.sha256", "notes.txt", "used.cwasm", "used.sha256"];
        assert_eq!(names(&dir), left);
    }

    #[test]
    fn loading_an_entry_marks_it_as_used() {
        let (dir, cache) = opened();
        let engine = Engine::default();
        let code = Compiled::new(&engine, b"\0asm\x0d\0\x01\0").unwrap();
        cache.put(&engine, "key", &code).unwrap();
        let file = dir.path().join("key.cwasm");
        File::open(&file).unwrap().set_modified(SystemTime::now() - KEPT).unwrap();
        assert!(cache.get(&engine, "key").is_some());
        cache.collect(&BTreeSet::new());
        assert!(file.exists());
    }

    #[test]
    fn entries_on_a_noexec_file_system_are_loaded_from_memory_if_they_are_intact() {
        let (dir, mut cache) = opened();
        cache.is_noexec = true;
        let engine = Engine::default();
        let code = Compiled::new(&engine, b"\0asm\x0d\0\x01\0").unwrap();
        cache.put(&engine, "key", &code).unwrap();
        assert!(cache.get(&engine, "key").is_some());
        fs::write(dir.path().join("key.cwasm"), "something else").unwrap();
        assert!(cache.get(&engine, "key").is_none());
    }

    #[test]
    fn a_directory_that_cannot_be_written_to_is_a_problem_with_its_consequence() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let cache = Cache::open(&dir.path().join("file/cache"));
        let problem = cache.problem().unwrap();
        assert!(problem.contains("is not used, so plugins are compiled every time: "), "{problem}");
    }
}
