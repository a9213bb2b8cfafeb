//! Watches the plugin directory for changes. Events are only hints: the registry scans the directory itself, and also
//! scans it regularly without events.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// A watch on one directory that notices when the directory itself is replaced.
pub(super) struct Watch {
    dir: PathBuf,
    watcher: Option<RecommendedWatcher>,
    watched: Option<(u64, u64)>,
}

impl Watch {
    /// Watches `dir`; `hint` is called on a thread of the watcher. Without a watcher (no inotify instance left), only the
    /// regular scans remain.
    pub(super) fn new(dir: PathBuf, hint: impl Fn() + Send + 'static) -> Self {
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.as_ref().map_or(true, is_change) {
                hint();
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!("plugin changes are noticed late, because files cannot be watched: {error}")
            })
            .ok();
        let mut watch = Self { dir, watcher, watched: None };
        watch.renew();
        watch
    }

    /// Renews the watch if the directory has been created, removed or replaced.
    pub(super) fn renew(&mut self) {
        let now = identity(&self.dir);
        let Some(watcher) = self.watcher.as_mut().filter(|_| now != self.watched) else { return };
        if self.watched.is_some() {
            _ = watcher.unwatch(&self.dir);
        }
        self.watched = now.filter(|_| watcher.watch(&self.dir, RecursiveMode::NonRecursive).is_ok());
    }
}

fn identity(dir: &Path) -> Option<(u64, u64)> {
    dir.metadata().ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Whether an event is a change. Reading a file is an event too, and would make each scan cause the next.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}
