//! A directory for a daemon process, with default settings and some plugins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child_process::ChildProcess;
use super::workspace::subdirectory;
use crate::cli::shipped::PLUGINS;

/// A daemon loads a file only after it has not changed for this long.
const SETTLED: Duration = Duration::from_millis(150);

/// The number of shipped plugins in such a directory.
pub(super) const SHIPPED: usize = 3;

/// A job type and its component.
pub(super) type Plugin = (String, Vec<u8>);

/// The first shipped plugins.
pub(super) fn shipped() -> Vec<Plugin> {
    PLUGINS.iter().take(SHIPPED).map(|(name, wasm)| ((*name).to_owned(), wasm.to_vec())).collect()
}

/// A directory for a daemon.
pub(super) struct DaemonDir {
    dir: PathBuf,
    plugins: usize,
}

/// When a daemon was ready, measured from its start.
pub(super) struct Started {
    /// When it began to claim jobs.
    pub(super) ready: Duration,
    /// When the last plugin was loaded.
    pub(super) serving: Duration,
}

impl DaemonDir {
    /// Creates a directory below `workspace` with default settings and these plugins.
    pub(super) async fn create(workspace: &Path, name: &str, plugins: &[Plugin]) -> anyhow::Result<Self> {
        let dir = subdirectory(workspace, name)?;
        std::fs::write(dir.join("jobq.toml"), "")?;
        let plugin_dir = subdirectory(&dir, "plugins")?;
        for (name, wasm) in plugins {
            std::fs::write(plugin_dir.join(format!("{name}.wasm")), wasm)?;
        }
        tokio::time::sleep(SETTLED).await;
        Ok(Self { dir, plugins: plugins.len() })
    }

    /// The path of the directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a daemon and waits until it is ready and all plugins are loaded.
    pub(super) async fn start(&self) -> anyhow::Result<(ChildProcess, Started)> {
        let mut daemon = ChildProcess::start(&self.dir, &["run"])?;
        let [ready, serving] = daemon.await_lines([("jobq is ready", 1), ("` serves: ", self.plugins)]).await?;
        Ok((daemon, Started { ready, serving }))
    }

    /// Starts a daemon whose plugins are already compiled.
    pub(super) async fn start_cached(&self) -> anyhow::Result<ChildProcess> {
        self.start().await?.0.stop().await?;
        Ok(self.start().await?.0)
    }

    /// Deletes the compiled plugins.
    pub(super) fn clear_cache(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_dir_all(self.dir.join(".jobq"))?)
    }
}
