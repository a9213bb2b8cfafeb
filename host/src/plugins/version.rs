//! One loaded version of a plugin.

use std::collections::BTreeMap;

use crate::sandbox::Plugin;
use parking_lot::Mutex;

/// One loaded version of a plugin. An attempt keeps the version that it started with.
pub struct Version {
    digest: [u8; 32],
    /// The key of its compiled code in the cache.
    key: String,
    plugin: Plugin,
    /// The number of attempts started on it, by job type: several types may share a file.
    attempts: Mutex<BTreeMap<String, u64>>,
}

impl Version {
    pub(super) fn new(digest: [u8; 32], key: String, plugin: Plugin) -> Self {
        Self { digest, key, plugin, attempts: Mutex::default() }
    }

    /// SHA-256 of the `.wasm`.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The plugin for the sandbox, to start an attempt of this type; counts the attempt.
    pub fn start(&self, job_type: &str) -> &Plugin {
        let mut attempts = self.attempts.lock();
        match attempts.get_mut(job_type) {
            Some(count) => *count += 1,
            None => _ = attempts.insert(job_type.to_owned(), 1),
        }
        &self.plugin
    }

    /// The plugin for the sandbox.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// The number of attempts of this type that were started on it.
    pub fn attempts(&self, job_type: &str) -> u64 {
        self.attempts.lock().get(job_type).copied().unwrap_or(0)
    }
}
