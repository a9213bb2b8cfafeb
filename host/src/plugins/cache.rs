//! Compiled code on disk, so that a component is compiled once per content and engine settings.
//!
//! The directory belongs to jobq alone (mode 0700): what lies in it is native code that will be run.
//! Each entry is the code and, beside it, the code's own SHA-256; an entry that does not match is compiled again.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// A directory of compiled components.
#[derive(Debug)]
pub struct Cache {
    dir: Option<PathBuf>,
}

impl Cache {
    /// Opens or creates the directory. One that cannot be trusted or written is not used, with a warning: everything is compiled anew then.
    pub fn open(dir: &Path) -> Self {
        match private_dir(dir) {
            Ok(()) => Self { dir: Some(dir.to_path_buf()) },
            Err(error) => {
                tracing::warn!("compiled plugins are not cached: `{}`: {error}", dir.display());
                Self { dir: None }
            }
        }
    }

    /// A cache that keeps nothing: everything is compiled anew.
    pub const fn none() -> Self {
        Self { dir: None }
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
    // SAFETY: `private_dir` made sure that only this user can write the directory, `is_whole` that the file is what
    // `keep` wrote there, and entries are replaced by rename, never in place, so the mapping does not change under us.
    // A different engine or version is refused by wasmtime itself.
    unsafe { Component::deserialize_file(engine, code) }
}

fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = fs::metadata(dir)?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if meta.mode() & 0o022 != 0 {
        let reason = "others can write it, so that its code cannot be trusted; delete it, or `chmod 700` an empty one";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
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

    fn opened_with_mode(mode: u32) -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let cache = Cache::open(dir.path());
        (dir, cache)
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_trusted() {
        for mode in [0o777, 0o770, 0o702] {
            assert!(opened_with_mode(mode).1.dir.is_none(), "{mode:o}");
        }
    }

    #[test]
    fn a_directory_that_others_can_only_read_is_closed_to_them() {
        let (dir, cache) = opened_with_mode(0o755);
        assert!(cache.dir.is_some());
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o700);
    }
}
