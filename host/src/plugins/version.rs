//! One loaded version of a plugin.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sandbox::Plugin;

/// One loaded version of a plugin. An attempt keeps the version that it started with.
pub struct Version {
    digest: [u8; 32],
    /// The key of its compiled code in the cache.
    key: String,
    plugin: Plugin,
    attempts: AtomicU64,
}

impl Version {
    pub(super) fn new(digest: [u8; 32], key: String, plugin: Plugin) -> Self {
        Self { digest, key, plugin, attempts: AtomicU64::new(0) }
    }

    /// SHA-256 of the `.wasm`.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The plugin for the sandbox, to start an attempt; counts the attempt.
    pub fn start(&self) -> &Plugin {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        &self.plugin
    }

    /// The plugin for the sandbox.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// The number of attempts started on it.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }
}
