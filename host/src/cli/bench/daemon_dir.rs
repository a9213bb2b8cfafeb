//! `jobq run` as a process of its own, in a directory with the default settings and some plugins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child_process::ChildProcess;
use super::workspace::subdirectory;
use crate::cli::shipped::PLUGINS;

/// A file must be untouched for longer than this before a daemon takes it.
const SETTLED: Duration = Duration::from_millis(150);

/// How many of the plugins that ship a daemon has that is watched.
pub(super) const SHIPPED: usize = 3;

/// A plugin: its type and its component.
pub(super) type Plugin = (String, Vec<u8>);

/// The plugins that ship.
pub(super) fn shipped() -> Vec<Plugin> {
    PLUGINS.iter().take(SHIPPED).map(|(name, wasm)| ((*name).to_owned(), wasm.to_vec())).collect()
}

/// A place for a daemon.
pub(super) struct DaemonDir {
    dir: PathBuf,
    plugins: usize,
}

/// How long after its start a daemon had come so far.
pub(super) struct Started {
    /// It claims jobs.
    pub(super) ready: Duration,
    /// Every plugin serves.
    pub(super) serving: Duration,
}

impl DaemonDir {
    /// A directory below `workspace` with default settings and these plugins.
    pub(super) async fn create(workspace: &Path, name: &str, plugins: &[Plugin]) -> anyhow::Result<Self> {
        let dir = subdirectory(workspace, name)?;
        std::fs::write(dir.join("jobq.toml"), "")?;
        let place = subdirectory(&dir, "plugins")?;
        for (name, wasm) in plugins {
            std::fs::write(place.join(format!("{name}.wasm")), wasm)?;
        }
        tokio::time::sleep(SETTLED).await;
        Ok(Self { dir, plugins: plugins.len() })
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a daemon and waits until it is ready and all of its plugins serve.
    pub(super) async fn start(&self) -> anyhow::Result<(ChildProcess, Started)> {
        let mut daemon = ChildProcess::start(&self.dir, &["run"])?;
        let [ready, serving] = daemon.await_lines([("jobq is ready", 1), ("` serves: ", self.plugins)]).await?;
        Ok((daemon, Started { ready, serving }))
    }

    /// Starts a daemon that has nothing to compile, because one before it has.
    pub(super) async fn start_cached(&self) -> anyhow::Result<ChildProcess> {
        self.start().await?.0.stop().await?;
        Ok(self.start().await?.0)
    }

    /// Deletes what was compiled.
    pub(super) fn clear_cache(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_dir_all(self.dir.join(".jobq"))?)
    }
}
